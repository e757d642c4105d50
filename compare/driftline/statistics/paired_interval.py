"""The interval of a difference of scores: Tango's, and at small counts the exact one."""

from typing import Final

from driftline.statistics.exact_interval import exact_interval
from driftline.statistics.tango import score_interval

SMALL_COUNT: Final = 25
"""Changed answers up to which the interval is exact, the customary bound for McNemar's test too. With so few, Tango's
one-sided error reaches 6.6 % towards the margin and 9.0 % away from it, where 5 % is promised; with the exact interval
there, 5.0 % and 5.6 % (benchmarks/statistics_intervals.py)."""


def paired_interval(lost: int, gained: int, n: int, *, level: float) -> tuple[float, float]:
    """Interval of head − base, both fractions of `n` questions, at confidence `level`.

    Raises:
        ValueError: if the counts do not fit `n`, or `level` is not between 0 and 1.
    """
    if lost + gained <= SMALL_COUNT:
        return exact_interval(lost, gained, n, level=level)
    return score_interval(lost, gained, n, level=level)
