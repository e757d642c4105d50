"""The verdict in a sentence and the colour of the check run (design 6, "two results", and 6.4)."""

from collections.abc import Sequence
from typing import Literal

from driftline.contracts.report import Headline, LaneView
from driftline.contracts.words import Confirmed, KernelCheckResult, Metric, RunState, SuiteResult, Verdict
from driftline.evidence import RunEvidence
from driftline.judge.kernel_check import KernelJudgement
from driftline.judge.suite import SuiteJudgement, told

Color = Literal["green", "red", "neutral", "grey"]


def headline(
    evidence: RunEvidence,
    verdict: Verdict | None,
    lanes: Sequence[LaneView],
    kernels: KernelJudgement,
    suite: SuiteJudgement | None = None,
) -> Headline:
    """Red if either result is bad, green only if both are good; what is missing is never green."""
    if evidence.state in (RunState.FAILED, RunState.CANCELLED, RunState.SUPERSEDED):
        return Headline(color="neutral", sentence=f"The run was not finished: it is {evidence.state}.")
    if verdict is None:
        return Headline(color="grey", sentence=f"Under way: the run is {evidence.state}.")
    accuracy = _accuracy(verdict, lanes, evidence.margin)
    hit = verdict in (Verdict.REGRESSED, Verdict.IMPROVED)
    if hit and not evidence.state.finished and any(lane.unfresh for lane in evidence.lanes):
        return Headline(
            color="grey", sentence=f"Suspected: {accuracy} A fresh pair of evaluations will confirm it or not."
        )
    sentence = f"{accuracy} {_kernels(kernels)}{told(suite)}"
    return Headline(color=_with_suite(_color(verdict, lanes, kernels, evidence.margin), suite), sentence=sentence)


def _with_suite(color: Color, suite: SuiteJudgement | None) -> Color:
    """A test that head fails and base passes in the same place is red; tests that were asked for and not judged are not
    green."""
    if suite is not None and suite.new_failures:
        return "red"
    missing = suite is not None and suite.view.result is SuiteResult.NOT_JUDGED
    return "neutral" if missing and color == "green" else color


def _color(verdict: Verdict, lanes: Sequence[LaneView], kernels: KernelJudgement, margin: float) -> Color:
    if verdict is Verdict.REGRESSED or kernels.new_failures or any(lane.broken for lane in lanes):
        return "red"
    if kernels.view.result is not KernelCheckResult.PASSED:
        return "neutral"
    if verdict is Verdict.EQUIVALENT or (verdict is Verdict.UNDERPOWERED and saw_enough(lanes, margin)):
        return "green"
    return "neutral"


def saw_enough(lanes: Sequence[LaneView], margin: float) -> bool:
    """Whether a drop as large as the margin would have been seen in every exact_match cell, and no logprob is in doubt."""
    cells = [cell for lane in lanes for cell in lane.comparisons if cell.verdict is Verdict.UNDERPOWERED]
    return all(
        cell.metric is Metric.EXACT_MATCH
        and cell.smallest_visible_drop is not None
        and cell.smallest_visible_drop <= margin
        for cell in cells
    )


def _accuracy(verdict: Verdict, lanes: Sequence[LaneView], margin: float) -> str:
    named = ", ".join(lane.name for lane in lanes if lane.verdict is verdict)
    match verdict:
        case Verdict.REGRESSED:
            return f"Accuracy regressed on {named}{_confirmation(verdict, lanes)}."
        case Verdict.NOT_COMPARABLE if any(lane.broken for lane in lanes):
            broken = ", ".join(lane.name for lane in lanes if lane.broken)
            return f"Head is broken on {broken}: it could not be evaluated while base could."
        case Verdict.NOT_COMPARABLE:
            return f"Accuracy could not be compared on {named or 'any lane'}."
        case Verdict.UNDERPOWERED if saw_enough(lanes, margin):
            return f"No drift seen on {named}; a drop of {100 * _largest_visible(lanes):.1f} points would have been."
        case Verdict.UNDERPOWERED:
            return f"No drift shown on {named}, but too few questions to rule it out."
        case Verdict.IMPROVED:
            return f"Accuracy improved on {named}{_confirmation(verdict, lanes)}."
        case Verdict.EQUIVALENT:
            return f"Accuracy is equivalent to base within {100 * margin:.1f} points on every lane."


def _confirmation(verdict: Verdict, lanes: Sequence[LaneView]) -> str:
    """What fresh pairs said, where they said anything."""
    words = {lane.confirmed for lane in lanes if lane.verdict is verdict}
    return ", confirmed by a fresh pair" if words == {Confirmed.YES} else ""


def _largest_visible(lanes: Sequence[LaneView]) -> float:
    drops = [
        cell.smallest_visible_drop
        for lane in lanes
        for cell in lane.comparisons
        if cell.metric is Metric.EXACT_MATCH and cell.smallest_visible_drop is not None
    ]
    return max(drops, default=0.0)


def _kernels(kernels: KernelJudgement) -> str:
    view = kernels.view
    match view.result:
        case KernelCheckResult.PASSED:
            return f"The kernel check passed all {len(view.cases)} cases."
        case KernelCheckResult.FAILED:
            return f"The kernel check failed: {view.reason}."
        case KernelCheckResult.WORSE_THAN_BASE:
            return f"The kernel check is worse than base: {view.reason}."
        case KernelCheckResult.NOT_JUDGED:
            return f"The kernels were not judged: {view.reason}."
