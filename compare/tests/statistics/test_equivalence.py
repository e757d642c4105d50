import numpy as np
import pytest
from driftline.statistics.equivalence import INTERVAL_LEVEL, within_margin
from driftline.statistics.tango import score_interval


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


def test_a_drop_of_the_whole_margin_is_called_equivalent_in_5_percent() -> None:
    rng = np.random.default_rng(12)
    lost, gained, _ = rng.multinomial(1319, (0.045, 0.02, 0.935), size=2000).T
    intervals = [score_interval(int(a), int(b), 1319, level=INTERVAL_LEVEL) for a, b in zip(lost, gained, strict=True)]
    assert np.mean([within_margin(each, 0.025) for each in intervals]) == pytest.approx(0.05, abs=0.015)
