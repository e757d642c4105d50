"""Tango's score interval for the difference of two paired proportions."""

from math import sqrt
from statistics import NormalDist

from driftline.statistics.root import root


def score_interval(lost: int, gained: int, n: int, *, level: float) -> tuple[float, float]:
    """Interval of head − base, both fractions of `n` questions, at confidence `level`.

    Source: Tango 1998 (Statistics in Medicine 17, 891): all differences that a score test would not reject, where the
    variance is that of the likelihood's maximum under the difference tested. Unlike Wald's interval it has a width even
    when no pair is discordant.

    Raises:
        ValueError: if the counts do not fit `n`, or `level` is not between 0 and 1.
    """
    if min(lost, gained) < 0 or n < 1 or lost + gained > n:
        raise ValueError(f"{lost} lost and {gained} gained do not fit {n} questions")
    if not 0 < level < 1:
        raise ValueError(f"a confidence level lies between 0 and 1, not at {level}")
    z = NormalDist().inv_cdf((1 + level) / 2)
    return -_upper(gained, lost, n, z), _upper(lost, gained, n, z)


def _upper(lost: int, gained: int, n: int, z: float) -> float:
    """The largest difference that is not rejected. The lower bound is that of the mirrored problem."""
    observed = (gained - lost) / n
    if observed == 1:
        return 1.0

    def not_rejected_by(delta: float) -> float:
        return gained - lost - n * delta + z * sqrt(n * _variance(lost, gained, n, delta))

    # Just above the observed difference: at it, with no discordant pair, the statistic is 0 over 0.
    return root(not_rejected_by, min(observed + 1e-9, 1.0), 1.0, xtol=1e-12)


def _variance(lost: int, gained: int, n: int, delta: float) -> float:
    """2·p_lost + δ(1 − δ), where p_lost maximises the likelihood given that gained − lost has expectation δ."""
    a, b, c = 2 * n, (2 * n - gained + lost) * delta - gained - lost, -lost * delta * (1 - delta)
    p_lost = (sqrt(max(b * b - 4 * a * c, 0.0)) - b) / (2 * a)
    return max(2 * p_lost + delta * (1 - delta), 0.0)
