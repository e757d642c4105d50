"""What a step's run says of its commit: good, bad, or not to be told."""

from dataclasses import dataclass

from driftline.contracts.bisect import StepOutcome
from driftline.contracts.report import RunView
from driftline.contracts.words import RunState, Verdict
from driftline.judge.headline import saw_enough

from driftline_service.database.tables import Run


@dataclass(frozen=True, slots=True)
class Judged:
    """The outcome and why, in a sentence."""

    outcome: StepOutcome
    why: str


def outcome_of(run: Run) -> Judged:
    """Of a finished run with one lane. What could not be measured, and what is too little to tell, is never good or bad."""
    if run.state is not RunState.DONE or run.view is None:
        return Judged(StepOutcome.SKIPPED, f"the run is {run.state.value}: {run.failure_message or 'not judged'}")
    view = RunView.model_validate(run.view)
    lane = view.lanes[0]
    why = lane.unsupported or next(iter(lane.reasons), view.headline.sentence)
    if lane.broken or lane.unsupported or not (lane.comparisons or lane.verdict is Verdict.EQUIVALENT):
        return Judged(StepOutcome.SKIPPED, why)
    match lane.verdict:
        case Verdict.REGRESSED:  # the cell that says so, whatever the others leave open
            return Judged(StepOutcome.BAD, next((each for each in lane.reasons if " regressed by " in each), why))
        case Verdict.EQUIVALENT | Verdict.IMPROVED:  # measured: what it came to; else why nothing had to be
            return Judged(StepOutcome.GOOD, view.headline.sentence if lane.comparisons else why)
        case Verdict.UNDERPOWERED if saw_enough([lane], view.margin):
            return Judged(StepOutcome.GOOD, view.headline.sentence)
        case _:
            return Judged(StepOutcome.SKIPPED, why)
