from math import sqrt

import numpy as np
import pytest
from driftline.statistics.tango import score_interval
from scipy.optimize import minimize_scalar


@pytest.mark.parametrize(
    ("lost", "gained", "n", "interval"),
    [
        # Fagerland, Lydersen and Laake 2014 (Statistics in Medicine 33, 2850), airway hyper-responsiveness.
        (7, 1, 21, (-0.517, -0.026)),
        # The same authors' second example, complete response of Cavo 2012.
        (16, 6, 161, (-0.1240, -0.0054)),
        # No discordant pair has the closed form z² / (n + z²) on both sides.
        (0, 0, 44, (-0.0803, 0.0803)),
    ],
)
def test_known_95_percent_intervals(lost: int, gained: int, n: int, interval: tuple[float, float]) -> None:
    assert score_interval(lost, gained, n, level=0.95) == pytest.approx(interval, abs=5e-4)


def test_no_discordant_pair_of_300_lies_inside_the_margin() -> None:
    assert score_interval(0, 0, 300, level=0.9) == pytest.approx((-0.008938, 0.008938), abs=1e-6)


def test_all_lost_and_all_gained_end_at_one() -> None:
    low, high = score_interval(10, 0, 10, level=0.9)
    assert low == -1
    assert -1 < high < 0
    assert score_interval(0, 10, 10, level=0.9) == pytest.approx((-high, 1))


@pytest.mark.parametrize(("lost", "gained", "n"), [(0, 1, 44), (5, 0, 300), (12, 30, 300), (40, 10, 60), (1, 1, 1319)])
def test_bounds_are_where_the_score_test_stops_rejecting(lost: int, gained: int, n: int) -> None:
    low, high = score_interval(lost, gained, n, level=0.95)
    assert low < (gained - lost) / n < high
    for bound in (low, high):
        assert abs(_statistic(lost, gained, n, bound)) == pytest.approx(1.959964, abs=1e-3)


def _statistic(lost: int, gained: int, n: int, delta: float) -> float:
    """The score statistic, its nuisance parameter found by maximising the likelihood without Tango's formula."""

    def minus_likelihood(p_lost: float) -> float:
        cells = ((lost, p_lost), (gained, p_lost + delta), (n - lost - gained, 1 - 2 * p_lost - delta))
        return -sum(count * np.log(max(share, 1e-300)) for count, share in cells if count)

    bounds = (max(0.0, -delta), (1 - delta) / 2)
    p_lost = minimize_scalar(minus_likelihood, bounds=bounds, method="bounded", options={"xatol": 1e-10}).x
    return (gained - lost - n * delta) / sqrt(n * (2 * p_lost + delta - delta**2))


def test_intervals_are_nested_and_mirrored() -> None:
    narrow, wide = score_interval(20, 12, 300, level=0.9), score_interval(20, 12, 300, level=0.95)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    assert score_interval(12, 20, 300, level=0.9) == pytest.approx((-narrow[1], -narrow[0]))


@pytest.mark.parametrize("counts", [(-1, 0, 10), (0, 0, 0), (6, 5, 10)])
def test_counts_that_do_not_fit_are_refused(counts: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="do not fit"):
        score_interval(*counts, level=0.9)


def test_level_outside_its_range_is_refused() -> None:
    with pytest.raises(ValueError, match="confidence level"):
        score_interval(1, 1, 10, level=90)


def test_coverage_is_the_level() -> None:
    rng = np.random.default_rng(2)
    draws = rng.multinomial(300, (0.05, 0.03, 0.92), size=2000)
    hits = 0
    for lost, gained, _ in draws:
        low, high = score_interval(int(lost), int(gained), 300, level=0.9)
        hits += low <= -0.02 <= high
    # 2,000 draws at 0.9 have a standard error of 0.0067.
    assert hits / 2000 == pytest.approx(0.9, abs=0.02)
