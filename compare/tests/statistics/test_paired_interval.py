"""Tango's interval and the exact one together keep what two one-sided tests at 5 % promise."""

from math import lgamma

import numpy as np
import pytest
from driftline.statistics.exact_interval import exact_interval
from driftline.statistics.paired_interval import SMALL_COUNT, paired_interval
from driftline.statistics.tango import score_interval

N, MOST = 200, 60


def test_exact_up_to_the_small_count_and_tango_above() -> None:
    assert paired_interval(SMALL_COUNT, 0, 300, level=0.9) == exact_interval(SMALL_COUNT, 0, 300, level=0.9)
    assert paired_interval(SMALL_COUNT, 1, 300, level=0.9) == score_interval(SMALL_COUNT, 1, 300, level=0.9)


def _upper_limits() -> np.ndarray:
    limits = np.ones((MOST + 1, MOST + 1))
    for lost in range(MOST + 1):
        for gained in range(MOST + 1 - lost):
            limits[lost, gained] = paired_interval(lost, gained, N, level=0.9)[1]
    return limits


def _mass(lost: float, gained: float) -> np.ndarray:
    """Probability of each (lost, gained), at least MOST of them together left out."""
    counts = np.arange(MOST + 1)
    a, b = counts[:, None], counts[None, :]
    choose = np.vectorize(lambda k: lgamma(k + 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        power = np.where(a > 0, a * np.log(lost), 0.0) + np.where(b > 0, b * np.log(gained), 0.0)
        log = choose(N) - choose(a) - choose(b) - choose(N - a - b) + power + (N - a - b) * np.log1p(-lost - gained)
    return np.where(a + b <= MOST, np.exp(log), 0.0)


def _worst(limits: np.ndarray, difference: float) -> float:
    smallest = max(0.0, -difference)
    shares = np.linspace(smallest, smallest + 0.04, 15)
    return max(_mass(lost, lost + difference)[limits < difference].sum() for lost in shares)


def test_one_sided_error_over_every_share_of_changed_answers_by_enumeration() -> None:
    limits = _upper_limits()
    towards_the_margin = [_worst(limits, k / N) for k in (0.5, 1, 2, 2.72, 3.01, 4, 6, 9)]
    # Two one-sided tests at 5 %: a change of the margin must not be called smaller more often.
    assert 0.045 < max(towards_the_margin) <= 0.0505
    assert max(_worst(limits, -k / N) for k in (0, 0.5, 1, 2, 3.5, 4.75, 6.31, 9)) <= 0.057


def test_tango_alone_would_break_the_promise_where_nothing_changed() -> None:
    difference = 2.72 / N
    assert score_interval(0, 0, N, level=0.9)[1] < difference < paired_interval(0, 0, N, level=0.9)[1]
    assert (1 - difference) ** N == pytest.approx(0.065, abs=0.001), "so often no answer of N is gained"
