"""Stopping a lane before all questions are asked: looked at whenever an arm reports, decided once, told at every report.

The arms are jobs of their own, side by side or one after the other; pairs are known up to the slower one. What the looks
mean is driftline.judge's; callers hold the locks of the reporting job and attempt.
"""

from driftline.contracts.lane import Lane
from driftline.contracts.words import Arm, JobKind
from driftline.contracts.worker_api import Directive
from driftline.judge.answers import Answers
from driftline.judge.early_stop import asked_together, stop_of
from driftline.judge.stopping import Plan, Stop, looks
from sqlalchemy.orm import Session

from driftline_service.database import attempt_queries, run_queries
from driftline_service.database.event_queries import record
from driftline_service.database.tables import Attempt, Job, Run, RunLane
from driftline_service.judging.evaluation import load_evaluation
from driftline_service.runs.baselines import differing_fields

CARRY_ON = Directive(action="continue")


def answer(session: Session, attempt: Attempt, job: Job) -> Directive:
    """What the worker of a running attempt is told: to go on, or that fewer questions are enough."""
    if job.kind is not JobKind.EVALUATE:
        return CARRY_ON
    row = run_queries.lane_of(session, job.run_id, job.lane_name or "")
    lane = Lane.model_validate(row.lane)
    if not lane.early_stopping:
        return CARRY_ON
    if row.stopped_after is None and job.pair == 0:  # later pairs end where the first did, with no look of their own
        _look(session, attempt, job, row, lane)
    if row.stopped_after is None:
        return CARRY_ON
    return Directive(action="stop", after=row.stopped_after, reason=row.stopped_why or "")


def keep_what_was_asked(session: Session, attempt: Attempt, job: Job) -> None:
    """A complete attempt that was told to stop, and did, consists of the questions that were enough: forget the rest."""
    row = run_queries.lane_of(session, job.run_id, job.lane_name or "")
    asked = Lane.model_validate(row.lane).questions
    if row.stopped_after is not None and len(attempt_queries.sampled_doc_ids(session, attempt.id)) < asked:
        attempt.asked = row.stopped_after
        attempt_queries.delete_samples_from(session, attempt.id, row.stopped_after)
        session.flush()


def _look(session: Session, attempt: Attempt, job: Job, row: RunLane, lane: Lane) -> None:
    """Decide if both arms have a block more than at this attempt's last look. Needs evaluations that may be compared."""
    other = attempt_queries.other_arm(session, job)
    if other is None or not _has_more(session, attempt, other, lane):
        return
    base, head = (attempt, other) if job.arm is Arm.BASE else (other, attempt)
    if differing_fields(base, head):
        return
    run = session.get_one(Run, job.run_id)
    arms = Answers(load_evaluation(session, base, lane)), Answers(load_evaluation(session, head, lane))
    attempt.looked = asked_together(arms)
    stop = stop_of(arms, Plan(lane.questions, run.margin, _lanes_that_may_stop(session, job)))
    if stop is not None:
        _stop(session, row, stop)


def _has_more(session: Session, attempt: Attempt, other: Attempt, lane: Lane) -> bool:
    """Whether a look has come into reach that this attempt has not had: a count that misses gaps, but costs little."""
    answered = min(len(attempt_queries.sampled_doc_ids(session, each.id)) for each in (attempt, other))
    return any(attempt.looked < after <= answered for after in looks(Plan(lane.questions, 1.0, 1)))


def _lanes_that_may_stop(session: Session, job: Job) -> int:
    """As driftline.judge.early_stop.early_lanes, from rows."""
    rows = run_queries.lanes_of(session, job.run_id)
    open_rows = (row for row in rows if row.identical is None and row.unreachable is None)
    return sum(Lane.model_validate(row.lane).early_stopping for row in open_rows)


def _stop(session: Session, row: RunLane, stop: Stop) -> None:
    """Keep the decision, unless the other arm's report was first; then its own stands."""
    if run_queries.stop_lane(session, row, after=stop.after, why=stop.sentence):
        record(session, row.run_id, "lane_stopped", f"{row.name}: {stop.sentence}")
    session.refresh(row)
