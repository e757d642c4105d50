"""A whole run judged: every lane weighed, all cells adjusted together, the worst told first (design 6.3 and 6.4)."""

from collections.abc import Sequence

from driftline.contracts.cell import CellView, Comparison
from driftline.contracts.report import LaneView, RunView
from driftline.contracts.words import VERDICTS_WORST_FIRST, Engine, Metric, Mode, Verdict
from driftline.evidence import RunEvidence
from driftline.judge.builds import build_views
from driftline.judge.cell import ALPHA, Cell, comparison, questions_to_settle
from driftline.judge.cells import CELLS_A_LANE, unmeasured_logprob
from driftline.judge.confirmation import confirmation
from driftline.judge.early_stop import early_lanes
from driftline.judge.format_drift import format_sentences
from driftline.judge.headline import headline
from driftline.judge.inputs import METHOD_VERSION, inputs_hash
from driftline.judge.kernel_check import judge_kernels
from driftline.judge.lane import Weighed, weigh
from driftline.judge.stopping import FULL_ALPHA
from driftline.judge.suite import judge_suite
from driftline.statistics.holm import adjusted


def judge(evidence: RunEvidence) -> RunView:
    """Everything that is known of a run. Evidence may be partial: what is still to come has no verdict yet."""
    early = early_lanes(evidence.lanes)
    weighed = [weigh(lane, evidence.margin, early) for lane in evidence.lanes]
    alpha = FULL_ALPHA if early else ALPHA
    planned = CELLS_A_LANE * sum(one.tested for one in weighed)
    p_values = [cell.p_value for one in weighed for cell in one.cells]
    corrected = iter(adjusted(p_values, max(planned, len(p_values))))
    lanes = [_view(one, [comparison(cell, next(corrected), planned, alpha) for cell in one.cells]) for one in weighed]
    kernels, suite = judge_kernels(evidence), judge_suite(evidence)
    verdict = _run_verdict(lanes)
    return RunView(
        run_id=evidence.run_id, name=evidence.name, repository=evidence.repository, base=evidence.base_sha,
        head=evidence.head_sha, base_subject=evidence.base_subject, head_subject=evidence.head_subject,
        state=evidence.state, created_at=evidence.created_at, finished_at=evidence.finished_at, margin=evidence.margin,
        method_version=METHOD_VERSION, inputs_hash=inputs_hash(evidence), verdict=verdict,
        headline=headline(evidence, verdict, lanes, kernels, suite), kernel_check=kernels.view, lanes=lanes,
        builds=build_views(evidence), build_notes=list(evidence.build_notes),
        suite=None if suite is None else suite.view, jobs=list(evidence.jobs), events=list(evidence.events),
    )  # fmt: skip


def worst(verdicts: Sequence[Verdict]) -> Verdict | None:
    """The worst of some verdicts; None of none."""
    return next((verdict for verdict in VERDICTS_WORST_FIRST if verdict in verdicts), None)


def _run_verdict(lanes: Sequence[LaneView]) -> Verdict | None:
    """The worst lane; none while a lane is pending. Without any lane that could be measured: not comparable."""
    measured = [lane for lane in lanes if lane.unsupported is None]
    if any(lane.verdict is None for lane in measured):
        return None
    return worst([lane.verdict for lane in measured if lane.verdict]) or Verdict.NOT_COMPARABLE


def _view(one: Weighed, comparisons: list[CellView]) -> LaneView:
    lane, noise = one.evidence.lane, one.evidence.noise
    told = [sentence for cell, done in zip(one.cells, comparisons, strict=True) for sentence in _sentences(done, cell)]
    if one.cells and len(one.cells) < CELLS_A_LANE:
        comparisons = [*comparisons, unmeasured_logprob(lane.task.name)]
        told.append("log-probability: not measured on both arms, so a drift below the answers cannot be ruled out")
    confirmed, why = confirmation(one.evidence, comparisons)
    told += [why] if why else []
    told += format_sentences(one.format_drift) if one.format_drift else []
    return LaneView(
        name=lane.name, model=lane.model.name, engine=lane.engine, mode=lane.mode, mode_label=mode_label(one),
        backend=lane.backend, task=lane.task.name, verdict=one.verdict or worst([each.verdict for each in comparisons]),
        broken=one.broken, unsupported=one.unsupported,
        confirmed=confirmed,
        unstable=noise is not None and noise.unstable, reasons=[*told, *one.reasons], comparisons=comparisons,
        scores=list(one.scores), health=list(one.health), divergence=one.divergence, format_drift=one.format_drift,
        noise=noise,
        key_differences=list(one.differences), changed_answers=one.changed,
    )  # fmt: skip


def mode_label(one: Weighed) -> str:
    """The mode with what it means on this engine; never a bare V0 for engine hf."""
    lane = one.evidence.lane
    if lane.engine is not Engine.HF:
        return f"{lane.mode} ({lane.engine})"
    if lane.mode is Mode.V0:
        return "V0 (hf: whole prompt)"
    return f"V1 (hf: prefill in chunks of {lane.engine_arguments.get('prefill_chunk_size', 64)})"


def _sentences(done: Comparison, cell: Cell) -> list[str]:
    """What a cell says in words; an equivalent cell says something only if it differs significantly all the same."""
    name = done.filter if done.metric is Metric.EXACT_MATCH else "log-probability"
    if done.base is None or done.head is None or done.p_adjusted is None:
        return []
    moved = _moved(done.metric, done.head - done.base)
    if done.verdict in (Verdict.REGRESSED, Verdict.IMPROVED):
        how = "at any look" if cell.early else "after Holm"
        return [f"{name} {done.verdict} by {moved} over {done.n} questions (p = {done.p_adjusted:.2g} {how})"]
    if cell.early is not None:
        return []  # where and why the lane was stopped says it
    if done.verdict is Verdict.UNDERPOWERED:
        settle = questions_to_settle(cell)
        hope = (
            f"about {settle} questions would settle it if the difference stays"
            if settle
            else "more questions would not settle it"
        )
        return [f"{name}: a difference of {moved} is neither significant nor inside the margin; {hope}"]
    if done.p_adjusted <= ALPHA:
        return [f"{name} differs significantly, by {moved}, but wholly inside the margin"]
    return []


def _moved(metric: Metric | str, difference: float) -> str:
    return f"{difference:+.4f} nats a token" if metric is Metric.LOGPROB else f"{100 * difference:+.1f} points"
