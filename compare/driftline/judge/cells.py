"""The three cells of a lane: exact_match under two filters, and the teacher-forced log-probability (design 6.3 to 6.7)."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from driftline.contracts.cell import CellView
from driftline.contracts.words import Metric
from driftline.judge.answers import FILTERS, Answers, paired_logprobs
from driftline.judge.cell import Cell, CellName, binary_cell, mean_cell, unmeasured
from driftline.judge.health import BUDGET

LOGPROB_MARGIN: Final = 0.002
"""Nats a token; planted kernel bugs moved it by 0.015 to 0.026 (docs/statistics.md)."""

TEACHER_FORCED: Final = "teacher-forced"
CELLS_A_LANE: Final = len(FILTERS) + 1


def cells(task: str, base: Answers, head: Answers, margin: float) -> list[Cell]:
    """The lane's cells over the questions that both arms answered."""
    shared = sorted(base.by_doc.keys() & head.by_doc.keys())
    found = [exact_match(task, name, (base, head), shared, margin) for name in FILTERS]
    return [*found, *logprob_cell(task, base, head, shared)]


def logprob_cell(task: str, base: Answers, head: Answers, shared: list[int]) -> list[Cell]:
    """The third cell over these questions; none if too few of them have log-probabilities in both arms."""
    moved = mean_logprobs(base, head, shared)
    return [] if moved is None else [_logprob(task, *moved)]


def unmeasured_logprob(task: str) -> CellView:
    """The third cell of a lane whose answers come without log-probabilities: it keeps its place, and is never green."""
    return unmeasured(CellName(task, Metric.LOGPROB, TEACHER_FORCED))


def exact_match(task: str, name: str, arms: tuple[Answers, Answers], shared: list[int], margin: float) -> Cell:
    """One filter's cell over these questions, all of which both arms answered."""
    base, head = (
        np.array([doc_id in right for doc_id in shared], dtype=bool) for right in (a.right(name) for a in arms)
    )
    return binary_cell(CellName(task, Metric.EXACT_MATCH, name), base, head, margin)


def _logprob(task: str, base: NDArray[np.float64], head: NDArray[np.float64]) -> Cell:
    return mean_cell(CellName(task, Metric.LOGPROB, TEACHER_FORCED), base, head, LOGPROB_MARGIN)


def mean_logprobs(
    base: Answers, head: Answers, shared: list[int]
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Mean log-probability a token of each question, for both arms.

    None if more questions than the budget allows lack a pair of equally many tokens.
    """
    pairs = []
    for doc_id in shared:
        tokens = paired_logprobs(base.forced.get(doc_id), head.forced.get(doc_id))
        if tokens is not None:
            pairs.append((float(tokens[0].mean()), float(tokens[1].mean())))
    if len(shared) - len(pairs) > BUDGET * len(shared):
        return None
    values = np.array(pairs)
    return values[:, 0], values[:, 1]
