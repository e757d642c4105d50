"""Binomial tails in NumPy alone: importing scipy.special takes a third of the time of a comparison of two gsm8k evaluations."""

from math import lgamma

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]


def at_most(k: int, n: int, chances: Floats | float) -> Floats:
    """P of at most `k` successes in `n` trials, for each chance of success in [0, 1]. `k` from 0 to n.

    For whole numbers it is the complement of the regularised incomplete beta function with parameters k + 1 and n − k.
    """
    successes = np.arange(k + 1)
    choose = np.array([lgamma(n + 1) - lgamma(j + 1) - lgamma(n - j + 1) for j in range(k + 1)])
    chance = np.atleast_1d(np.asarray(chances, dtype=np.float64))[:, None]
    points = np.exp(choose + _times_log(successes, chance) + _times_log(n - successes, 1 - chance))
    found: Floats = np.minimum(points.sum(axis=1), 1.0)
    return found


def mass(n: int, chance: float) -> Floats:
    """P of 0 … n successes in `n` trials; shape (n + 1,)."""
    successes = np.arange(n + 1)
    return _points(np.full(n + 1, n), successes, chance)


def at_least(needed: Counts, chance: float) -> Floats:
    """P of at least needed[m] successes in m trials, for m = 0 … len(needed) − 1; shape as `needed`.

    `needed` grows by 0 or 1 from one m to the next. Then each P follows from the one before it: one trial more adds the
    cases that were one success short, one success more takes away those that just reached it. The sums are good to 1e-12.
    """
    trials, short = np.arange(len(needed) - 1), needed[:-1]
    added = chance * _points(trials, short - 1, chance)
    removed = np.where(needed[1:] > short, _points(trials + 1, short, chance), 0.0)
    start = 1.0 if needed[0] <= 0 else 0.0
    return np.clip(np.concatenate(([start], start + np.cumsum(added - removed))), 0.0, 1.0)


def least_significant(n: int, tail: float) -> Counts:
    """For 0 … n fair coins the fewest heads whose tail is at most `tail`; one more than all coins where none is.

    In floats, which hold the tails of up to some 50 coins without rounding: there a tail can equal a round `tail`.
    """
    needed = np.empty(n + 1, dtype=np.int64)
    heads, beyond, just_short = 1, 0.0, 1.0  # P of at least `heads`, and of exactly one fewer
    needed[0] = heads
    for coins in range(1, n + 1):
        beyond += just_short / 2
        just_short *= coins / (2 * (coins - heads + 1))
        if beyond > tail:
            just_short *= (coins - heads + 1) / heads
            beyond -= just_short
            heads += 1
        needed[coins] = heads
    return needed


def _points(trials: Counts, successes: Counts, chance: float) -> Floats:
    """P of exactly so many successes, 0 where there cannot be as many; shapes as given."""
    possible = (successes >= 0) & (successes <= trials)
    inside = np.where(possible, successes, 0)
    factorials = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, int(trials.max(initial=0)) + 1)))))
    choose = factorials[trials] - factorials[inside] - factorials[trials - inside]
    log = choose + _times_log(inside, np.float64(chance)) + _times_log(trials - inside, np.float64(1 - chance))
    return np.where(possible, np.exp(log), 0.0)


def _times_log(counts: Counts, chance: Floats | np.float64) -> Floats:
    """counts · log(chance), with 0 · log 0 = 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        product = counts * np.log(chance)
    return np.where(counts == 0, 0.0, product)
