"""Change points in a lane's history: commits from which the score stays at another level.

What people then do with one (confirm, acknowledge, ignore, call fixed) is no statistic and lives elsewhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

import numpy as np
from numpy.typing import NDArray

SHORTEST = 3
"""Commits of a level. One odd commit, or two, are spikes: they are looked at by themselves and make no level."""

CHANGE_ALPHA = 0.01
"""Chance that a history without a change shows one, at one look."""

DRAWS = 999
"""Orders drawn a test: the smallest p is then 0.001, a tenth of what is asked."""

SEED = 20250803

TIE = 1e-9
"""Gains this much smaller, relative to the observed, still count as equal: rounding must not break ties."""

REACH = 5.0
"""Standard deviations from the median beyond which a value counts as no farther away."""

NORMAL_MAD = 0.6744897501960817
"""Median absolute deviation of a normal distribution, in standard deviations."""

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ChangePoint:
    """The first commit of a new level."""

    index: int
    """of that commit in the history"""
    before: float
    """median of the level before, in the unit of the history"""
    after: float
    p_value: float
    """chance that an order of the same values drawn at random splits as well"""

    @property
    def confidence(self) -> float:
        """1 − p: how sure it is that the level changed here rather than nowhere."""
        return 1 - self.p_value


def change_points(
    history: NDArray[np.float64], *, alpha: float = CHANGE_ALPHA, draws: int = DRAWS, seed: int = SEED
) -> tuple[ChangePoint, ...]:
    """The change points of `history` (shape (commits,), oldest first, any unit), in order; none of fewer than six commits.

    A history is split where the squares within the parts are least, then each part again. A split counts if at most a
    share `alpha` of random orders of the part can be split as well; one split is tried first, then two, since a level
    that came and went hides from one. Values far off are limited, so that a spike cannot hide a step, and levels must
    differ by rank too, so that it cannot make one.

    Source: splits, Truong, Oudre and Vayatis 2020 (Signal Processing 167, 107299), the exact optimum of their library
    ruptures; limited values, Fearnhead and Rigaill 2019 (J. Am. Stat. Assoc. 114, 169); part by part with permutations,
    Matteson and James 2014 (J. Am. Stat. Assoc. 109, 334).

    Raises:
        ValueError: if a value is not finite, or `alpha` is smaller than `draws` can show.
    """
    if not np.all(np.isfinite(history)):
        raise ValueError("a history holds finite scores only: leave out commits that were not measured")
    if not 2 / (draws + 1) <= alpha < 1:
        raise ValueError(f"{draws} draws cannot show p-values at alpha {alpha}: draw at least {2 / alpha - 1:.0f}")
    rng = np.random.default_rng(seed)
    found = dict(sorted(_splits(history, 0, rng, alpha=alpha, draws=draws)))
    edges = [0, *found, history.size]
    levels = [float(np.median(history[start:end])) for start, end in pairwise(edges) if end > start]
    return tuple(
        ChangePoint(index, before, after, p_value)
        for (index, p_value), (before, after) in zip(found.items(), pairwise(levels), strict=True)
    )


def _splits(
    part: Values, offset: int, rng: np.random.Generator, *, alpha: float, draws: int
) -> Iterator[tuple[int, float]]:
    """Index and p of each split of a part and of its parts. Half of `alpha` goes to one split, half to two."""
    for count in (1, 2):
        if part.size < SHORTEST * (count + 1) or np.all(part == part[0]):
            return
        values = _limited(part)
        edges = _settled(part, [0, *_best(values, count), part.size])
        if not _are_levels(part, edges, alpha):
            continue
        p_value = min(1.0, 2 * _p_value(values, count, rng, draws))
        if p_value <= alpha:
            yield from ((offset + edge, p_value) for edge in edges[1:-1])
            for start, end in pairwise(edges):
                yield from _splits(part[start:end], offset + start, rng, alpha=alpha, draws=draws)
            return


def _limited(part: Values) -> Values:
    """Distances from the median, at most `REACH` standard deviations, or as they are where most commits change nothing.

    The deviation is that between neighbours, which a step, however large, moves once only.
    """
    distances: Values = part - np.median(part)
    reach = REACH * float(np.median(np.abs(np.diff(part)))) / (NORMAL_MAD * sqrt(2))
    return np.clip(distances, -reach, reach) if reach > 0 else distances


def _are_levels(part: Values, edges: list[int], alpha: float) -> bool:
    """Whether each part has at least `SHORTEST` commits of its own, nearer to its median than to its neighbour's, and
    neighbours differ by rank.

    Squares alone let two commits far off carry an ordinary one or more with them.
    """
    from scipy.stats import mannwhitneyu

    parts = [part[start:end] for start, end in pairwise(edges)]
    return all(
        _own(before, after) >= SHORTEST
        and _own(after, before) >= SHORTEST
        and mannwhitneyu(before, after).pvalue <= alpha
        for before, after in pairwise(parts)
    )


def _own(level: Values, other: Values) -> int:
    here, there = np.median(level), np.median(other)
    return int(np.count_nonzero(np.abs(level - here) < np.abs(level - there)))


def _settled(part: Values, edges: list[int]) -> list[int]:
    """Each split moved to where the commits around it are nearest to the two levels' medians, the others left in place.

    Limited values cannot tell a low commit of the old level from one of the new.
    """
    moved = list(edges)
    for place in range(1, len(edges) - 1):
        start, edge, end = moved[place - 1 : place + 2]
        here, there = (np.abs(part[start:end] - np.median(level)) for level in (part[start:edge], part[edge:end]))
        misfit = [here[:cut].sum() + there[cut:].sum() for cut in range(SHORTEST, end - start - SHORTEST + 1)]
        moved[place] = start + SHORTEST + int(np.argmin(misfit))
    return moved


def _p_value(values: Values, count: int, rng: np.random.Generator, draws: int) -> float:
    least = _gain(values, _best(values, count)) * (1 - TIE)
    orders = (rng.permutation(values) for _ in range(draws))
    hits = sum(_gain(order, _best(order, count)) >= least for order in orders)
    return (1 + hits) / (1 + draws)


def _best(values: Values, count: int) -> list[int]:
    """Where `count` splits leave the least squares within the parts, each of at least `SHORTEST` commits."""
    from ruptures import KernelCPD

    edges: list[int] = KernelCPD(kernel="linear", min_size=SHORTEST).fit(values[:, None]).predict(n_bkps=count)
    return edges[:-1]


def _gain(values: Values, edges: list[int]) -> float:
    """Squares that the splits take out: those between the parts. The total is the same for all orders."""
    bounds = [0, *edges, values.size]
    sums = np.add.reduceat(values - values.mean(), bounds[:-1])
    return float((sums**2 / np.diff(bounds)).sum())
