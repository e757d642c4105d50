"""The one-sided error of the paired intervals, by enumeration: no draws, so no error of its own.

For each number of questions the true difference and the share of changed answers run over a grid; each table of lost and
gained answers has its limit and its probability. Printed is the largest probability that the upper limit lies below the
true difference, in the control environment: `python benchmarks/statistics_intervals.py` (a minute).
"""

from collections.abc import Callable

import numpy as np
from driftline.statistics.exact_interval import exact_interval
from driftline.statistics.paired_interval import paired_interval
from driftline.statistics.tango import score_interval
from numpy.typing import NDArray
from scipy.special import gammaln

QUESTIONS = (60, 300, 1319)
MOST = 60
"""Changed answers looked at; more are left out, so the shares below keep the mean number under half of it."""
LEVEL = 0.9
PROMISED = (1 - LEVEL) / 2
TOWARDS = (0.5, 1.0, 1.5, 2.0, 2.72, 3.01, 3.5, 4.75, 6.31, 8.0, 12.0, 20.0)
"""True differences times n. Those just above where a limit lies are the worst: 2.71 and 3.00 are the limits at no change."""

Interval = Callable[..., tuple[float, float]]
METHODS: dict[str, Interval] = {"Tango": score_interval, "exact": exact_interval, "both": paired_interval}


def main() -> None:
    print(f"largest probability of an upper limit below the truth, promised {PROMISED:.1%}")
    print(f"{'n':>5} {'method':8} {'truth above 0':>14} {'truth below 0':>14}")
    for n in QUESTIONS:
        for name, interval in METHODS.items():
            limits = upper_limits(interval, n)
            above = max(worst(limits, n, k / n) for k in TOWARDS)
            below = max(worst(limits, n, -k / n) for k in TOWARDS)
            print(f"{n:5} {name:8} {above:14.2%} {below:14.2%}", flush=True)


def upper_limits(interval: Interval, n: int) -> NDArray[np.float64]:
    """Limits by lost and gained answers, shape (MOST + 1, MOST + 1); 1 where more are changed than are looked at."""
    limits = np.ones((MOST + 1, MOST + 1))
    for lost in range(MOST + 1):
        for gained in range(min(MOST, n) + 1 - lost):
            limits[lost, gained] = interval(lost, gained, n, level=LEVEL)[1]
    return limits


def worst(limits: NDArray[np.float64], n: int, difference: float) -> float:
    """Over the shares of changed answers that go with a difference, up to a mean of MOST / 2 answers."""
    smallest = max(0.0, -difference)
    room = max(0.0, (MOST / 2 / n - abs(difference)) / 2)
    shares = smallest + np.linspace(0, room, 25)
    return max(float(mass(n, lost, lost + difference)[limits < difference].sum()) for lost in shares)


def mass(n: int, lost: float, gained: float) -> NDArray[np.float64]:
    """Probability of each table of at most MOST changed answers."""
    counts = np.arange(MOST + 1)
    a, b = counts[:, None], counts[None, :]
    possible = a + b <= min(MOST, n)
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = np.where(a > 0, a * np.log(lost), 0.0) + np.where(b > 0, b * np.log(gained), 0.0)
    choose = gammaln(n + 1) - gammaln(a + 1) - gammaln(b + 1) - gammaln(np.maximum(n - a - b, 0) + 1)
    return np.where(possible, np.exp(choose + powers + (n - a - b) * np.log1p(-lost - gained)), 0.0)


if __name__ == "__main__":
    main()
