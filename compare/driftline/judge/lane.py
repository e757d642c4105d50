"""One lane's evidence weighed: what can be said before the other lanes of the run are known (design 6.1 to 6.4).

A lane ends early where there is nothing to test: identical arms, a backend out of reach, a missing mode, a broken head, an
evaluation without health, keys that do not match. Otherwise it has its cells, whose p-values the run adjusts together.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from driftline.contracts.beside import Divergence, FormatDrift
from driftline.contracts.report import ArmHealth, ArmScore, KeyDifference
from driftline.contracts.words import Arm, FailureKind, Metric, Verdict
from driftline.evidence import ArmFailure, EvaluationEvidence, LaneEvidence
from driftline.judge.answers import FILTERS, Answers
from driftline.judge.blame import in_words, is_heads_fault
from driftline.judge.cell import Cell
from driftline.judge.cells import cells, logprob_cell
from driftline.judge.changed import changed_questions
from driftline.judge.comparability import key_differences, unpaired
from driftline.judge.divergence import divergence
from driftline.judge.early_stop import early_cells
from driftline.judge.format_drift import format_drift
from driftline.judge.health import health, over_budget
from driftline.judge.stopping import Plan

MOST_FIELDS: Final = 5
"""Differing fields named in the sentence; the page lists all."""


@dataclass(frozen=True, slots=True)
class Weighed:
    """A lane before Holm. `verdict` is set where it was decided without a test; `cells` where it was not."""

    evidence: LaneEvidence
    reasons: tuple[str, ...] = ()
    verdict: Verdict | None = None
    cells: tuple[Cell, ...] = ()
    broken: bool = False
    unsupported: str | None = None
    pending: bool = False
    scores: tuple[ArmScore, ...] = ()
    health: tuple[ArmHealth, ...] = ()
    divergence: Divergence | None = None
    format_drift: FormatDrift | None = None
    differences: tuple[KeyDifference, ...] = ()
    changed: int | None = None
    tested: bool = field(default=True)
    """whether the lane's cells are among the planned ones of the run"""


def weigh(lane: LaneEvidence, margin: float, early_lanes: int = 0) -> Weighed:
    """What one lane's evidence says by itself; `early_lanes` of the run may stop early."""
    if lane.identical:
        return Weighed(lane, (f"nothing was run: {lane.identical}",), Verdict.EQUIVALENT, tested=False)
    if lane.unreachable:
        reason = f"this lane cannot see this change: {lane.unreachable}"
        return Weighed(lane, (reason,), Verdict.NOT_COMPARABLE, tested=False)
    seen = tuple(health(arm, one) for arm, one in ((Arm.BASE, lane.base), (Arm.HEAD, lane.head)) if one is not None)
    if isinstance(lane.base, ArmFailure) or isinstance(lane.head, ArmFailure):
        return _failed(lane, seen)
    if lane.base is None or lane.head is None:
        return Weighed(lane, pending=True, health=seen, scores=_scores(lane))
    return _compared(lane, (lane.base, lane.head), seen, Plan(lane.lane.questions, margin, max(early_lanes, 1)))


def _failed(lane: LaneEvidence, seen: tuple[ArmHealth, ...]) -> Weighed:
    """At least one arm gave no evidence."""
    base, head, scores = lane.base, lane.head, _scores(lane)
    without = {arm for arm, one in ((Arm.BASE, base), (Arm.HEAD, head)) if _is_unsupported(one)}
    if without == {Arm.BASE, Arm.HEAD} and isinstance(head, ArmFailure):
        return Weighed(lane, (head.message,), unsupported=head.message, health=seen, tested=False)
    if base is None or head is None:
        return Weighed(lane, pending=True, health=seen, scores=scores)
    if without == {Arm.HEAD} and isinstance(head, ArmFailure) and isinstance(base, EvaluationEvidence):
        reason = f"lost mode {lane.lane.mode}: {head.message}"
        return Weighed(lane, (reason,), Verdict.REGRESSED, health=seen, scores=scores)
    if isinstance(head, ArmFailure) and isinstance(base, EvaluationEvidence) and is_heads_fault(head):
        reason = f"head could not be evaluated while base could: {in_words(head)}"
        return Weighed(lane, (reason,), Verdict.NOT_COMPARABLE, broken=True, health=seen, scores=scores)
    reasons = tuple(
        f"{arm} could not be evaluated: {in_words(one)}"
        for arm, one in ((Arm.BASE, base), (Arm.HEAD, head))
        if isinstance(one, ArmFailure)
    )
    return Weighed(lane, reasons, Verdict.NOT_COMPARABLE, health=seen, scores=scores)


def _is_unsupported(arm: object) -> bool:
    return isinstance(arm, ArmFailure) and arm.kind is FailureKind.UNSUPPORTED


def _compared(
    lane: LaneEvidence, arms: tuple[EvaluationEvidence, EvaluationEvidence], seen: tuple[ArmHealth, ...], plan: Plan
) -> Weighed:
    base, head = Answers(arms[0]), Answers(arms[1])
    differences = tuple(key_differences(*arms))
    refusals = list(refused(arms, seen))
    facts: dict[str, object] = {"health": seen, "scores": _scores(lane), "differences": differences}
    if refusals:
        told = (*refusals, *_vouched(arms[0]))
        return Weighed(lane, told, Verdict.NOT_COMPARABLE, **facts)  # type: ignore[arg-type]
    facts |= {
        "divergence": divergence(base, head, lane.noise), "format_drift": format_drift(base, head),
        "changed": len(changed_questions(base, head)),
    }  # fmt: skip
    if lane.noise is not None and lane.noise.unstable:
        reason = (
            "this lane differs from itself: evaluations of one commit disagree, so no change is blamed for a difference"
        )
        return Weighed(lane, (reason,), Verdict.NOT_COMPARABLE, **facts)  # type: ignore[arg-type]
    told, found = _cells(lane, (base, head), plan)
    return Weighed(
        lane,
        (*told, *_vouched(arms[0]), *_caused(differences)),
        cells=found,
        **facts,  # type: ignore[arg-type]
    )


def _cells(lane: LaneEvidence, arms: tuple[Answers, Answers], plan: Plan) -> tuple[tuple[str, ...], tuple[Cell, ...]]:
    """The lane's cells, and of one that may stop early in words where it ended. Log-probabilities are of all questions."""
    task, (base, head) = lane.lane.task.name, arms
    if not lane.lane.early_stopping:
        return (), tuple(cells(task, base, head, plan.margin))
    found, told = early_cells(task, arms, plan)
    forced = sorted(base.forced.keys() | head.forced.keys())
    return (told,), (*found, *logprob_cell(task, base, head, forced))


def refused(arms: tuple[EvaluationEvidence, EvaluationEvidence], seen: Sequence[ArmHealth]) -> Iterator[str]:
    """Why two evaluations, of this health, must not be compared; nothing if they may."""
    yield from (why for why in map(over_budget, seen) if why)
    for arm, one in zip(Arm, arms, strict=True):
        if one.scores is None:
            yield f"{arm}: lm-eval's own scores are missing, so nothing proves ours"
    blocking = [each.field for each in key_differences(*arms) if each.blocks]
    if blocking:
        more = f" and {len(blocking) - MOST_FIELDS} more" if len(blocking) > MOST_FIELDS else ""
        yield f"the arms differ in {', '.join(blocking[:MOST_FIELDS])}{more}"
    if why := unpaired(Answers(arms[0]), Answers(arms[1])):
        yield why


def _vouched(base: EvaluationEvidence) -> tuple[str, ...]:
    """Whose word a base arm rests on that was not measured here."""
    if (by := base.vouched) is None:
        return ()
    return (
        f"base was not measured here: it is import {by.import_id}, reported by {by.reported_by}; {by.promoted_by} "
        "promoted it and vouches for what its files do not say",
    )


def _caused(differences: tuple[KeyDifference, ...]) -> tuple[str, ...]:
    return tuple(f"{each.field}: {each.base} on base, {each.head} on head" for each in differences if not each.blocks)


def _scores(lane: LaneEvidence) -> tuple[ArmScore, ...]:
    """lm-eval's own rows of each arm that reported them."""
    return tuple(
        ArmScore(
            arm=arm, task=lane.lane.task.name, version=one.scores.task_version, filter=name,
            n_shot=one.scores.num_fewshot, metric=Metric.EXACT_MATCH, value=one.scores.metrics[key],
            stderr=one.scores.stderr.get(key),
        )
        for arm, one in ((Arm.BASE, lane.base), (Arm.HEAD, lane.head))
        if isinstance(one, EvaluationEvidence) and one.scores is not None
        for name in reversed(list(FILTERS))
        if (key := f"exact_match,{name}") in one.scores.metrics
    )  # fmt: skip
