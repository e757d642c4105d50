"""What a comparison could have seen: the smallest drop with a stated power, and the questions that settle a doubt."""

from functools import lru_cache
from math import ceil, sqrt
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftline.statistics import binomial
from driftline.statistics.root import root

POWER = 0.8

RESOLUTION = 1e-6
"""Nats a token. Below it stored log-probabilities cannot tell: a float32 of some 8 nats is rounded by up to 5e-7."""


@lru_cache(maxsize=1024)
def smallest_visible_drop(lost: int, gained: int, n: int, *, alpha: float) -> float | None:
    """The drop of a score that the exact two-sided McNemar test at `alpha` finds with 80 % power; None if none is.

    The discordant share is the observed one, but at least the drop itself, since a drop of d makes a share d of the
    questions discordant. So with no discordant pair the answer is the drop of pure losses that would have been seen,
    never 0. Source of the exact power: Duffy 1984 (Biometrics 40, 1005): the number of discordant pairs is binomial,
    and so is, given it, the number of losses.

    Raises:
        ValueError: if the counts do not fit `n`.
    """
    if min(lost, gained) < 0 or n < 1 or lost + gained > n:
        raise ValueError(f"{lost} lost and {gained} gained do not fit {n} questions")
    share = (lost + gained) / n

    def missing(drop: float) -> float:
        return mcnemar_power(drop, share, n, alpha=alpha) - POWER

    return root(missing, 1e-9, 1.0, xtol=1e-7) if missing(1.0) >= 0 else None


def mcnemar_power(drop: float, share: float, n: int, *, alpha: float) -> float:
    """Probability that a true drop `drop` is found as a loss, with `share` of the questions discordant."""
    share = min(1.0, max(share, drop))
    found = binomial.at_least(_losses_needed(n, alpha), (1 + drop / share) / 2)
    return float(binomial.mass(n, share) @ found)


@lru_cache(maxsize=64)
def _losses_needed(n: int, alpha: float) -> NDArray[np.int64]:
    """For 0 … n discordant pairs the least number of losses that is significant; one more than all where none is."""
    return binomial.least_significant(n, alpha / 2)


class Spread(NamedTuple):
    """Paired differences in short: their standard deviation, and how many there are."""

    deviation: float
    n: int


def smallest_visible_mean(spread: Spread, *, alpha: float) -> float | None:
    """The mean log-probability difference that a two-sided test at `alpha` finds with 80 % power, in nats a token.

    None with fewer than two questions. Differences that are all the same count as spread by the resolution, so the
    answer is never 0. Source: the normal approximation, (z_{1−α/2} + z_{0.8}) · standard error.
    """
    if spread.n < 2:
        return None
    normal = NormalDist()
    return (normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(POWER)) * max(spread.deviation, RESOLUTION) / sqrt(spread.n)


def questions_for_equivalence(variance: float, margin: float) -> int:
    """Questions at which two arms without a true difference are found equivalent with 80 % power.

    `variance` is that of one question's difference; for exact_match it is the discordant share. Source: two one-sided
    tests at 5 %, Julious 2004 (Statistics in Medicine 23, 1921): n = (z_0.95 + z_0.9)² · variance / margin².
    """
    normal = NormalDist()
    return max(1, ceil((normal.inv_cdf(0.95) + normal.inv_cdf((1 + POWER) / 2)) ** 2 * variance / margin**2))
