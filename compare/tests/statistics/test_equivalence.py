import numpy as np
import pytest
from driftline.statistics.equivalence import INTERVAL_LEVEL, within_margin
from driftline.statistics.paired_interval import paired_interval


def test_wholly_inside_and_not() -> None:
    assert within_margin((-0.01, 0.02), 0.025)
    assert within_margin((0.0, 0.0), 0.002)
    assert not within_margin((-0.03, 0.0), 0.025)
    assert not within_margin((0.0, 0.03), 0.025)
    assert not within_margin((-0.025, 0.0), 0.025), "the margin itself is outside"


@pytest.mark.parametrize("margin", [0.0, -0.1])
def test_no_margin_is_refused(margin: float) -> None:
    with pytest.raises(ValueError, match="margin must be positive"):
        within_margin((0.0, 0.0), margin)


def test_it_is_two_one_sided_tests() -> None:
    """Inside the 90 % interval or not, and rejected by both exact one-sided tests at 5 % or not, are one question."""
    for n in (118, 119):
        # No answer changed. Against a drop of the margin, the chance of that is (1 − 0.025)^n.
        rejects = (1 - 0.025) ** n <= 0.05
        assert within_margin(paired_interval(0, 0, n, level=INTERVAL_LEVEL), 0.025) == rejects
    assert not within_margin(paired_interval(0, 0, 118, level=INTERVAL_LEVEL), 0.025)


def test_a_drop_of_the_whole_margin_is_called_equivalent_in_5_percent() -> None:
    rng = np.random.default_rng(12)
    lost, gained, _ = rng.multinomial(1319, (0.045, 0.02, 0.935), size=2000).T
    intervals = [paired_interval(int(a), int(b), 1319, level=INTERVAL_LEVEL) for a, b in zip(lost, gained, strict=True)]
    assert np.mean([within_margin(each, 0.025) for each in intervals]) == pytest.approx(0.05, abs=0.015)
