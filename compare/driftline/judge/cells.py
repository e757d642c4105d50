"""The three cells of a lane: exact_match under two filters, and the teacher-forced log-probability (design 6.3 to 6.7)."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from driftline.contracts.report import Comparison
from driftline.contracts.words import Metric, Verdict
from driftline.judge.answers import FILTERS, Answers, paired_logprobs
from driftline.judge.health import BUDGET
from driftline.statistics.bootstrap import mean_interval
from driftline.statistics.equivalence import INTERVAL_LEVEL, within_margin
from driftline.statistics.mcnemar import exact_p
from driftline.statistics.paired_interval import paired_interval
from driftline.statistics.permutation import sign_flip_p
from driftline.statistics.power import Spread, questions_for_equivalence, smallest_visible_drop, smallest_visible_mean

ALPHA: Final = 0.05
"""For the family of all cells of a run, after Holm."""

LOGPROB_MARGIN: Final = 0.002
"""Nats a token; planted kernel bugs moved it by 0.015 to 0.026 (docs/statistics.md)."""

TEACHER_FORCED: Final = "teacher-forced"
CELLS_A_LANE: Final = len(FILTERS) + 1


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell before the run's other cells are known: everything but the adjusted p-value and what follows from it."""

    task: str
    metric: Metric
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
    margin: float


def cells(task: str, base: Answers, head: Answers, margin: float) -> list[Cell]:
    """The lane's cells over the questions that both arms answered."""
    shared = sorted(base.by_doc.keys() & head.by_doc.keys())
    found = [_exact_match(task, name, (base, head), shared, margin) for name in FILTERS]
    moved = mean_logprobs(base, head, shared)
    return found if moved is None else [*found, _logprob(task, *moved)]


def unmeasured_logprob(task: str) -> Comparison:
    """The third cell of a lane whose answers come without log-probabilities: it keeps its place, and is never green."""
    return Comparison(
        task=task, metric=Metric.LOGPROB, filter=TEACHER_FORCED, n=0, base=None, head=None, lost=None, gained=None,
        p_value=None, p_adjusted=None, interval=None, smallest_visible_drop=None, verdict=Verdict.NOT_COMPARABLE,
    )  # fmt: skip


def _exact_match(task: str, name: str, arms: tuple[Answers, Answers], shared: list[int], margin: float) -> Cell:
    questions = frozenset(shared)
    right_base, right_head = (arm.right(name) & questions for arm in arms)
    lost, gained, n = len(right_base - right_head), len(right_head - right_base), len(shared)
    difference = (gained - lost) / n
    return Cell(
        task=task, metric=Metric.EXACT_MATCH, filter=name, n=n, base=len(right_base) / n, head=len(right_head) / n,
        lost=lost, gained=gained, p_value=exact_p(lost, gained),
        interval=paired_interval(lost, gained, n, level=INTERVAL_LEVEL),
        deviation=math.sqrt(max((lost + gained) / n - difference**2, 0.0)), margin=margin,
    )  # fmt: skip


def _logprob(task: str, base: NDArray[np.float64], head: NDArray[np.float64]) -> Cell:
    differences = head - base
    return Cell(
        task=task, metric=Metric.LOGPROB, filter=TEACHER_FORCED, n=differences.size, base=float(base.mean()),
        head=float(head.mean()), lost=None, gained=None, p_value=sign_flip_p(differences),
        interval=mean_interval(differences, level=INTERVAL_LEVEL),
        deviation=float(differences.std(ddof=1)) if differences.size > 1 else 0.0, margin=LOGPROB_MARGIN,
    )  # fmt: skip


def mean_logprobs(
    base: Answers, head: Answers, shared: list[int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Mean log-probability a token of each question, for both arms.

    None if more questions than the budget allows lack a pair of equally many tokens.
    """
    pairs = []
    for doc_id in shared:
        tokens = paired_logprobs(base.by_doc[doc_id], head.by_doc[doc_id])
        if tokens is not None:
            pairs.append((float(tokens[0].mean()), float(tokens[1].mean())))
    if len(shared) - len(pairs) > BUDGET * len(shared):
        return None
    values = np.array(pairs)
    return values[:, 0], values[:, 1]


def comparison(cell: Cell, p_adjusted: float, planned: int) -> Comparison:
    """The finished cell: its verdict by rule 4."""
    return Comparison(
        task=cell.task, metric=cell.metric, filter=cell.filter, n=cell.n, base=cell.base, head=cell.head, lost=cell.lost,
        gained=cell.gained, p_value=cell.p_value, p_adjusted=p_adjusted, interval=cell.interval,
        smallest_visible_drop=_smallest_visible_drop(cell, planned), verdict=_verdict(cell, p_adjusted),
    )  # fmt: skip


def _smallest_visible_drop(cell: Cell, planned: int) -> float | None:
    if cell.lost is None or cell.gained is None:
        return smallest_visible_mean(Spread(n=cell.n, deviation=cell.deviation), alpha=ALPHA / planned)
    return smallest_visible_drop(cell.lost, cell.gained, cell.n, alpha=ALPHA / planned)


def _verdict(cell: Cell, p_adjusted: float) -> Verdict:
    if within_margin(cell.interval, cell.margin):
        return Verdict.EQUIVALENT
    if p_adjusted <= ALPHA:
        return Verdict.REGRESSED if cell.head < cell.base else Verdict.IMPROVED
    return Verdict.UNDERPOWERED


def questions_to_settle(cell: Cell) -> int | None:
    """How many questions would put the interval inside the margin if the difference stays; None if none would.

    Without any discordant pair the exact interval ends at 1 − 0.05^(1/n), which is inside the margin from there on.
    """
    room = cell.margin - abs(cell.head - cell.base)
    if room <= 0:
        return None
    if cell.deviation == 0:
        return math.ceil(math.log((1 - INTERVAL_LEVEL) / 2) / math.log1p(-room)) if room < 1 else 1
    return questions_for_equivalence(cell.deviation**2, room)
