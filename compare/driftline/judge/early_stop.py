"""Where a lane with early stopping ends, found again from its two evaluations, and what its cells say there.

The service and the judgement at the end both ask here, look by look from the first: so a word that came late, or was lost,
changes how many questions were asked but never the verdict.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from driftline.contracts.words import Verdict
from driftline.evidence import LaneEvidence
from driftline.judge.answers import FILTERS, Answers
from driftline.judge.cell import Cell, Early
from driftline.judge.cells import exact_match
from driftline.judge.stopping import (
    EARLY_ALPHA,
    FULL_LEVEL,
    INSIDE_ALPHA,
    Pairs,
    Plan,
    Stop,
    StopKind,
    first_stop,
    lane_log_e,
    looks,
)
from driftline.statistics.e_process import interval, log_e_no_drift
from driftline.statistics.paired_interval import paired_interval

Arms = tuple[Answers, Answers]
"""base and head"""


def early_lanes(lanes: Sequence[LaneEvidence]) -> int:
    """Lanes of a run that may stop early: what is spent is shared among them, whether or not they do."""
    return sum(each.lane.early_stopping and not each.identical and not each.unreachable for each in lanes)


def stop_of(arms: Arms, plan: Plan) -> Stop | None:
    """The first look that decides, over the questions that both arms answered in the fixed order; None to go on."""
    return first_stop(_seen(arms, plan), plan)


def asked_together(arms: Arms) -> int:
    """How many questions of the fixed order both arms answered without a gap."""
    base, head = arms
    return next(
        (place for place, doc_id in enumerate(_order(arms)) if doc_id not in base.by_doc or doc_id not in head.by_doc),
        len(_order(arms)),
    )


def early_cells(task: str, arms: Arms, plan: Plan) -> tuple[list[Cell], str]:
    """The exact_match cells of a lane that may stop early, and in words where they ended and by which test."""
    asked = min(len(one.evidence.expected_doc_ids) for one in arms)
    stop = stop_of(arms, plan) or (_cut_short(asked, plan) if asked < plan.questions else None)
    asked = stop.after if stop else asked
    shared = [doc_id for doc_id in _order(arms)[:asked] if all(doc_id in one.by_doc for one in arms)]
    found = [exact_match(task, name, arms, shared, plan.margin) for name in FILTERS]
    if stop is None:
        told = (
            f"asked all {plan.questions} questions, though it might have stopped early: exact_match has 92 % intervals"
        )
        return [_on_all_questions(cell) for cell in found], told
    pairs = [_pairs(cell) for cell in found]
    lane_p = min(1.0, plan.lanes * math.exp(-lane_log_e(pairs)))
    told = f"{stop.sentence}; exact_match has 92 % intervals that hold at every look"
    return [_stopped(cell, stop, plan, lane_p) for cell in found], told


def _order(arms: Arms) -> tuple[int, ...]:
    """The lane's questions: an arm that was stopped was asked the first of them."""
    return max((one.evidence.expected_doc_ids for one in arms), key=len)


def _seen(arms: Arms, plan: Plan) -> Iterator[list[Pairs]]:
    """Each look's cells, as far as both arms go."""
    together, order = asked_together(arms), _order(arms)
    changes = [_changes(name, arms) for name in FILTERS]
    for after in looks(plan):
        if after > together:
            return
        asked = frozenset(order[:after])
        yield [Pairs(len(lost & asked), len(gained & asked), after) for lost, gained in changes]


def _changes(name: str, arms: Arms) -> tuple[frozenset[int], frozenset[int]]:
    """(lost, gained) questions of one filter."""
    before, after = (one.right(name) for one in arms)
    return before - after, after - before


def _pairs(cell: Cell) -> Pairs:
    return Pairs(cell.lost or 0, cell.gained or 0, cell.n)


def _cut_short(asked: int, plan: Plan) -> Stop:
    """An arm was stopped for answers that its partner's next attempt did not give again."""
    told = f"only the first {asked} of {plan.questions} questions were asked of both arms, and they settle nothing"
    return Stop(StopKind.FUTILE, asked, told, 0.0)


def _on_all_questions(cell: Cell) -> Cell:
    pairs = _pairs(cell)
    bounds = paired_interval(pairs.lost, pairs.gained, pairs.n, level=FULL_LEVEL)
    return replace(cell, interval=bounds, level=FULL_LEVEL)


def _stopped(cell: Cell, stop: Stop, plan: Plan, lane_p: float) -> Cell:
    """Values that hold however often one looked. In Holm's family such a cell keeps its place with p = 1."""
    pairs = _pairs(cell)
    log_e = log_e_no_drift(pairs.lost, pairs.gained)
    early = Early(min(1.0, math.exp(-log_e)), lane_p, _verdict(pairs, log_e, stop, plan))
    bounds = interval(pairs.lost, pairs.gained, pairs.n, alpha=INSIDE_ALPHA)
    return replace(cell, p_value=1.0, interval=bounds, level=1 - 2 * INSIDE_ALPHA, early=early)


def _verdict(pairs: Pairs, log_e: float, stop: Stop, plan: Plan) -> Verdict:
    """A lane that moved has at least one cell with evidence as great as the lane's; the others are left open."""
    if stop.kind is StopKind.EQUIVALENT:
        return Verdict.EQUIVALENT
    if stop.kind is StopKind.FUTILE or log_e < math.log(plan.lanes / EARLY_ALPHA):
        return Verdict.UNDERPOWERED
    return Verdict.REGRESSED if pairs.lost > pairs.gained else Verdict.IMPROVED
