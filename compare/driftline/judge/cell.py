"""One cell: a paired test of one metric under one filter, from its counts or differences to its verdict (design 6.3, 6.4).

The service's lanes and `driftline compare` both build their cells here. Which cells there are is decided elsewhere.
"""

import math
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftline.contracts.cell import CellView
from driftline.contracts.words import Metric, Verdict
from driftline.statistics.bootstrap import mean_interval
from driftline.statistics.equivalence import INTERVAL_LEVEL, within_margin
from driftline.statistics.mcnemar import exact_p
from driftline.statistics.paired_interval import paired_interval
from driftline.statistics.permutation import sign_flip_p
from driftline.statistics.power import Spread, questions_for_equivalence, smallest_visible_drop, smallest_visible_mean

ALPHA: Final = 0.05
"""For the family of all cells of a run, after Holm."""


class CellName(NamedTuple):
    """Which test it is."""

    task: str
    metric: Metric | str
    filter: str


@dataclass(frozen=True, slots=True)
class Early:
    """What a cell of a lane that was stopped says, by evidence that may be looked at any time."""

    p_value: float
    """1 / the cell's e-value"""
    p_adjusted: float
    """of the lane, times the lanes that might stop; it counts at 0.01"""
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell before the other cells of its family are known: everything but the adjusted p-value and what follows."""

    task: str
    metric: Metric | str
    filter: str
    n: int
    base: float
    head: float
    lost: int | None
    gained: int | None
    p_value: float
    interval: tuple[float, float]
    deviation: float
    """standard deviation of the paired differences"""
    margin: float | None
    """None where no margin is known: then nothing is equivalent"""
    span: float | None = None
    """how far one question's difference can go at most, where the metric is not 0/1 and that is known"""
    higher_is_better: bool | None = True
    """None where that is not known: then a move in any direction counts as regressed"""
    level: float = INTERVAL_LEVEL
    """of `interval`"""
    early: Early | None = None
    """set where the lane was stopped: then `p_value` only keeps the cell's place in its family"""


def binary_cell(name: CellName, base: NDArray[np.bool_], head: NDArray[np.bool_], margin: float) -> Cell:
    """The cell of a 0/1 metric. `base` and `head`: shape (questions,), right or wrong, question by question.

    Raises:
        ValueError: if there is no question.
    """
    n, lost, gained = base.size, int((base & ~head).sum()), int((head & ~base).sum())
    if n == 0:
        raise ValueError(f"{name.task}, {name.filter}: no questions to compare")
    difference = (gained - lost) / n
    return Cell(
        *name, n=n, base=int(base.sum()) / n, head=int(head.sum()) / n, lost=lost, gained=gained,
        p_value=exact_p(lost, gained), interval=paired_interval(lost, gained, n, level=INTERVAL_LEVEL),
        deviation=math.sqrt(max((lost + gained) / n - difference**2, 0.0)), margin=margin,
    )  # fmt: skip


def mean_cell(
    name: CellName,
    base: NDArray[np.float64],
    head: NDArray[np.float64],
    margin: float | None,
    *,
    span: float | None = None,
) -> Cell:
    """The cell of any other metric, by paired permutation. `base` and `head`: shape (questions,), any unit, finite.

    With a `span`, differences that are all the same are not taken for certainty: the interval is as wide as that of a
    0/1 metric without a changed answer, times the span.
    """
    differences = head - base
    interval = mean_interval(differences, level=INTERVAL_LEVEL)
    if span is not None and interval[0] == interval[1]:
        slack = span * paired_interval(0, 0, differences.size, level=INTERVAL_LEVEL)[1]
        interval = (interval[0] - slack, interval[1] + slack)
    return Cell(
        *name, n=differences.size, base=float(base.mean()), head=float(head.mean()), lost=None, gained=None,
        p_value=sign_flip_p(differences), interval=interval, margin=margin, span=span,
        deviation=float(differences.std(ddof=1)) if differences.size > 1 else 0.0,
    )  # fmt: skip


def unmeasured(name: CellName) -> CellView:
    """A cell without anything to test: it keeps its place, and is never green."""
    return CellView(
        task=name.task, metric=name.metric, filter=name.filter, n=0, base=None, head=None, lost=None, gained=None,
        p_value=None, p_adjusted=None, interval=None, smallest_visible_drop=None, verdict=Verdict.NOT_COMPARABLE,
    )  # fmt: skip


def comparison(cell: Cell, p_adjusted: float, planned: int, alpha: float = ALPHA) -> CellView:
    """The finished cell: its verdict by rule 4 at the family's `alpha`, or the one with which its lane was stopped."""
    if cell.early is not None:
        return _stopped(cell, cell.early)
    return CellView(
        task=cell.task, metric=cell.metric, filter=cell.filter, n=cell.n, base=cell.base, head=cell.head, lost=cell.lost,
        gained=cell.gained, p_value=cell.p_value, p_adjusted=p_adjusted, interval=cell.interval,
        smallest_visible_drop=_smallest_visible_drop(cell, alpha / planned), verdict=_verdict(cell, p_adjusted, alpha),
        interval_level=cell.level,
    )  # fmt: skip


def _stopped(cell: Cell, early: Early) -> CellView:
    return CellView(
        task=cell.task, metric=cell.metric, filter=cell.filter, n=cell.n, base=cell.base, head=cell.head, lost=cell.lost,
        gained=cell.gained, p_value=early.p_value, p_adjusted=early.p_adjusted, interval=cell.interval,
        smallest_visible_drop=None, verdict=early.verdict, interval_level=cell.level,
    )  # fmt: skip


def _smallest_visible_drop(cell: Cell, alpha: float) -> float | None:
    if cell.lost is None or cell.gained is None:
        if cell.span is not None and cell.deviation == 0:
            drop = smallest_visible_drop(0, 0, cell.n, alpha=alpha)
            return None if drop is None else cell.span * drop
        return smallest_visible_mean(Spread(n=cell.n, deviation=cell.deviation), alpha=alpha)
    return smallest_visible_drop(cell.lost, cell.gained, cell.n, alpha=alpha)


def _verdict(cell: Cell, p_adjusted: float, alpha: float) -> Verdict:
    if cell.margin is not None and within_margin(cell.interval, cell.margin):
        return Verdict.EQUIVALENT
    if p_adjusted > alpha:
        return Verdict.UNDERPOWERED
    better = cell.higher_is_better is not None and (cell.head > cell.base) == cell.higher_is_better
    return Verdict.IMPROVED if better else Verdict.REGRESSED


def questions_to_settle(cell: Cell) -> int | None:
    """How many questions would put the interval inside the margin if the difference stays; None if none would.

    Without any discordant pair the exact interval ends at 1 − 0.05^(1/n), which is inside the margin from there on.
    """
    room = 0.0 if cell.margin is None else cell.margin - abs(cell.head - cell.base)
    if room <= 0:
        return None
    if cell.deviation == 0:
        return math.ceil(math.log((1 - INTERVAL_LEVEL) / 2) / math.log1p(-room)) if room < 1 else 1
    return questions_for_equivalence(cell.deviation**2, room)
