"""Batches of lines, heartbeats and the end of an attempt, each in the caller's transaction."""

from datetime import datetime, timedelta
from uuid import UUID

from driftline.contracts.channel import Hello
from driftline.contracts.lane import Lane
from driftline.contracts.words import AttemptState, FailureKind, JobKind
from driftline.contracts.worker_api import Directive, Finish, LineBatch
from sqlalchemy import text
from sqlalchemy.orm import Session

from driftline_service.api.problems import Problem
from driftline_service.database import attempt_queries, outbox_queries, run_queries, worker_queries
from driftline_service.database.event_queries import record
from driftline_service.database.tables import PROGRESS_CHANNEL, Attempt, Job
from driftline_service.runs import early_stop, planner
from driftline_service.runs.outcomes import AttemptFailure, adopt, give_up, title
from driftline_service.worker_api import admission, completeness, storing
from driftline_service.worker_api.leases import CARRY_ON, extend, locked_attempt, not_running
from driftline_service.worker_api.specs import lane_ranks

COUNTS = {
    JobKind.BUILD: attempt_queries.build_count,
    JobKind.CHECK: attempt_queries.case_count,
    JobKind.TESTS: attempt_queries.test_count,
}
"""How many rows an attempt of a kind has."""


def store_lines(
    session: Session, attempt_id: UUID, token: str, batch: LineBatch, *, lease: timedelta, now: datetime
) -> Directive:
    """Store a batch once. A line that may not be reported ends the attempt instead, and the worker stops.

    Raises:
        Problem: 401 wrong token, 410 attempt over, 409 if batches before this one are missing.
    """
    attempt = locked_attempt(session, attempt_id, token)
    if (stop := not_running(session, attempt)) is not None:
        return stop
    _heard(session, attempt, lease, now)
    job = session.get_one(Job, attempt.job_id)
    if batch.sequence < attempt.next_sequence:
        return early_stop.answer(session, attempt, job)
    if batch.sequence > attempt.next_sequence:
        raise Problem(409, "batch_missing", f"batch {batch.sequence} came before batch {attempt.next_sequence}")
    known = _known(session, attempt, job)
    if (refused := admission.refusal(batch.lines, known)) is not None:
        give_up(session, attempt, AttemptFailure(FailureKind.TRANSIENT, refused.reason, refused.message), now)
        return Directive(action="stop", reason=f"{refused.reason}: {refused.message}")
    if batch.sequence == 0 and any(isinstance(line, Hello) for line in batch.lines):
        _note_first_line(session, attempt, job, now)
    storing.store(session, attempt, batch.lines, rows_before=known.rows)
    attempt.next_sequence += 1
    session.execute(text("select pg_notify(:channel, :run)"), {"channel": PROGRESS_CHANNEL, "run": str(job.run_id)})
    return early_stop.answer(session, attempt, job)


def heartbeat(session: Session, attempt_id: UUID, token: str, *, lease: timedelta, now: datetime) -> Directive:
    """Extend the lease.

    Raises:
        Problem: 401 wrong token, 410 attempt over.
    """
    attempt = locked_attempt(session, attempt_id, token)
    if (stop := not_running(session, attempt)) is not None:
        return stop
    _heard(session, attempt, lease, now)
    return early_stop.answer(session, attempt, session.get_one(Job, attempt.job_id))


def finish(session: Session, attempt_id: UUID, token: str, end: Finish, *, now: datetime) -> Directive:
    """End the attempt: adopted if it succeeded and everything asked for is there.

    Raises:
        Problem: 401 wrong token, 410 attempt over, 422 if a failure names no kind or one that is not a worker's.
    """
    attempt = locked_attempt(session, attempt_id, token)
    if attempt.state is AttemptState.SUCCEEDED and end.outcome == "succeeded":
        return CARRY_ON  # the answer to the first report was lost
    if (stop := not_running(session, attempt)) is not None:
        return stop
    attempt.dropped_lines, attempt.child_seconds = end.dropped_lines, end.child_seconds
    session.flush()
    failure = _failure(end) if end.outcome == "failed" else completeness.missing(session, attempt, end)
    if failure is None:
        job = session.get_one(Job, attempt.job_id)
        if job.kind is JobKind.EVALUATE:
            early_stop.keep_what_was_asked(session, attempt, job)
        adopt(session, attempt, now)
        return CARRY_ON
    give_up(session, attempt, failure, now)
    return CARRY_ON if end.outcome == "failed" else Directive(action="stop", reason=failure.message)


def _failure(end: Finish) -> AttemptFailure:
    if end.failure_kind is None or end.failure_kind is FailureKind.LOST:
        kinds = "transient, permanent or unsupported"
        raise Problem(422, "malformed", f"a failed attempt needs a failure_kind: {kinds}; got {end.failure_kind}")
    reason = end.reason or "unexplained"
    if reason in planner.SOURCE_GONE and end.child_seconds > 0:
        reason = f"child_{reason}"  # only a worker knows this; a child that says so spoils its own job, not the run
    return AttemptFailure(end.failure_kind, reason, end.message)


def _note_first_line(session: Session, attempt: Attempt, job: Job, now: datetime) -> None:
    """How long a message took to become a speaking child: what a reader waits for and an operator watches."""
    sent_at = outbox_queries.last_sent_before(session, job.id, attempt.created_at)
    waited = "" if sent_at is None else f", {(now - sent_at).total_seconds():.1f} s after its message was sent"
    record(session, job.run_id, "child_speaks", f"{title(job)}: first line of attempt {attempt.number}{waited}",
           job_id=job.id)  # fmt: skip


def _heard(session: Session, attempt: Attempt, lease: timedelta, now: datetime) -> None:
    extend(attempt, lease, now)
    worker_queries.saw_worker(session, attempt.worker_name, now)


def _known(session: Session, attempt: Attempt, job: Job) -> admission.Known:
    if job.kind is not JobKind.EVALUATE:
        count = COUNTS[job.kind]
        rows, has_summary = count(session, attempt.id), attempt.check_summary is not None
        return admission.Known(job.kind, rows=rows, has_summary=has_summary)
    row = run_queries.lane_of(session, job.run_id, job.lane_name or "")
    return admission.Known(
        job.kind, ranks=lane_ranks(Lane.model_validate(row.lane)),
        sampled=attempt_queries.sampled_doc_ids(session, attempt.id),
        forced=attempt_queries.forced_doc_ids(session, attempt.id), has_scores=attempt.scores is not None,
    )  # fmt: skip
