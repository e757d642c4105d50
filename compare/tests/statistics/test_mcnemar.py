import numpy as np
import pytest
from driftline.statistics.mcnemar import exact_p, one_sided_p


@pytest.mark.parametrize(
    ("lost", "gained", "p"),
    [(60, 40, 0.0569), (70, 40, 0.00545), (45, 30, 0.1053), (10, 0, 0.00195), (6, 0, 0.0313), (5, 0, 0.0625), (90, 60, 0.0176)],
)  # fmt: skip
def test_known_values(lost: int, gained: int, p: float) -> None:
    assert exact_p(lost, gained) == pytest.approx(p, rel=0.005)


@pytest.mark.parametrize(
    ("lost", "gained", "p"),
    [
        # Fagerland, Lydersen and Laake 2013 (BMC Medical Research Methodology 13, 91): the data of Bentur 2009 and Cavo 2012.
        (1, 7, 0.0703),
        (6, 16, 0.0525),
        # Tonsillectomy and Hodgkin's disease, Johnson and Johnson 1972, as R's exact2x2 gives it.
        (15, 7, 0.1338),
        # exact2x2's vignette.
        (9, 2, 0.06543),
        # Armitage and Berry 1994, p. 127: media for culturing tubercle bacilli, after Liddell.
        (12, 2, 0.0129),
    ],
)
def test_published_values(lost: int, gained: int, p: float) -> None:
    assert exact_p(lost, gained) == pytest.approx(p, abs=5.1e-5)


def test_no_discordant_pair_and_balance_are_no_evidence() -> None:
    assert exact_p(0, 0) == 1
    assert exact_p(7, 7) == 1


def test_direction_does_not_matter() -> None:
    assert exact_p(31, 12) == exact_p(12, 31)


def test_many_pairs_do_not_overflow() -> None:
    assert 0 < exact_p(9000, 8500) < 0.001


def test_negative_count_is_refused() -> None:
    with pytest.raises(ValueError, match="-1 and 3"):
        exact_p(-1, 3)


@pytest.mark.parametrize(
    ("towards", "away", "p"),
    [(5, 0, 1 / 32), (4, 0, 1 / 16), (8, 1, 10 / 512), (1, 8, 511 / 512), (0, 0, 1), (0, 3, 1)],
)
def test_one_side_is_the_binomial_tail(towards: int, away: int, p: float) -> None:
    assert one_sided_p(towards, away) == p


def test_false_alarms_stay_below_the_level() -> None:
    rng = np.random.default_rng(1)
    lost = rng.binomial(40, 0.5, size=4000)
    assert np.mean([exact_p(int(k), 40 - int(k)) <= 0.05 for k in lost]) <= 0.05
