"""The exact interval for the difference of two paired proportions, for few changed answers."""

from functools import cache
from math import lgamma
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftline.statistics.binomial import at_most
from driftline.statistics.root import root

NODES = 64
"""Of the Gauss-Legendre quadrature. The integrand is smooth; 32 and 128 nodes give the same limit to nine places."""


class _Pairs(NamedTuple):
    """Counts as the formulas want them."""

    gained: int
    discordant: int
    n: int


def exact_interval(lost: int, gained: int, n: int, *, level: float) -> tuple[float, float]:
    """Interval of head − base, both fractions of `n` questions, at confidence `level`: at least that, not about that.

    Source: Fay and Lumbard 2021 (Statistics in Medicine 40, 1147). The difference is the share T of discordant pairs
    times 2B − 1, where B is the share of gains among them; both have Clopper-Pearson confidence distributions, and the
    product of the two that reach farther gives the limit. The interval leaves out 0 exactly when one side of the exact
    McNemar test rejects, and without a discordant pair it ends at ±(1 − ((1 − level)/2)^(1/n)).

    Raises:
        ValueError: if the counts do not fit `n`, or `level` is not between 0 and 1.
    """
    if min(lost, gained) < 0 or n < 1 or lost + gained > n:
        raise ValueError(f"{lost} lost and {gained} gained do not fit {n} questions")
    if not 0 < level < 1:
        raise ValueError(f"a confidence level lies between 0 and 1, not at {level}")
    alpha = (1 - level) / 2
    discordant = lost + gained
    return -_upper(_Pairs(lost, discordant, n), alpha), _upper(_Pairs(gained, discordant, n), alpha)


def _upper(pairs: _Pairs, alpha: float) -> float:
    """The difference that all larger ones are rejected against at `alpha`."""
    if pairs.gained == pairs.n:
        return 1.0
    observed = (2 * pairs.gained - pairs.discordant) / pairs.n
    return root(lambda delta: _tail(delta, pairs) - alpha, max(observed, -1 + 1e-9), 1.0, xtol=1e-10)


def _tail(delta: float, pairs: _Pairs) -> float:
    """P(T(2B − 1) ≥ δ) under the upper confidence distribution of B: of T the upper one for δ ≥ 0, else the lower."""
    gained, discordant, n = pairs
    lost = discordant - gained
    if lost == 0:  # B is 1, so that the product is T itself
        return float(at_most(discordant, n, max(delta, 0.0))[0])
    middle = (1 + delta) / 2
    if delta >= 0:
        shares, weights = _nodes(middle, 1.0)
        reached = np.minimum(delta / np.maximum(2 * shares - 1, 1e-300), 1.0)
        return float(weights @ (_density(shares, gained, lost) * at_most(discordant, n, reached)))
    shares, weights = _nodes(0.0, middle)
    reached = np.minimum(delta / (2 * shares - 1), 1.0)
    chance = 1 - at_most(discordant - 1, n, reached)
    return float(at_most(gained, discordant, middle)[0] + weights @ (_density(shares, gained, lost) * chance))


def _nodes(start: float, end: float) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    nodes, weights = _legendre()
    return start + (end - start) * (nodes + 1) / 2, weights * (end - start) / 2


@cache
def _legendre() -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    return np.polynomial.legendre.leggauss(NODES)


def _density(shares: NDArray[np.float64], gained: int, lost: int) -> NDArray[np.float64]:
    """The beta density with parameters gained + 1 and lost; only asked inside (0, 1), or where no interval is left."""
    inside = np.clip(shares, 1e-300, 1 - 1e-16)
    choose = lgamma(gained + lost + 1) - lgamma(gained + 1) - lgamma(lost)
    density: NDArray[np.float64] = np.exp(choose + gained * np.log(inside) + (lost - 1) * np.log1p(-inside))
    return density
