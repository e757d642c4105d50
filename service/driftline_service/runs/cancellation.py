"""Ending a run before its verdict: cancelled by a person, superseded by a newer head, or failed because it must."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from driftline.contracts.words import RunState
from sqlalchemy.orm import Session

from driftline_service.database import attempt_queries, job_queries, run_queries
from driftline_service.database.event_queries import record
from driftline_service.runs.states import may_become_run


def cancel(session: Session, run_id: UUID, reason: str) -> bool:
    """Cancel the run and its unfinished jobs in the caller's transaction. False if it was finished already."""
    return _end(session, run_id, RunState.CANCELLED, reason)


def supersede(session: Session, run_id: UUID, by_run_id: UUID) -> bool:
    """As `cancel`, because a newer run of the same head replaces this one."""
    return _end(session, run_id, RunState.SUPERSEDED, f"superseded by run {by_run_id}")


def fail(session: Session, run_id: UUID, *, reason: str, message: str) -> bool:
    """As `cancel`, because nothing of the run can be measured or judged."""
    values = {"failure_reason": reason, "failure_message": message}
    return _end(session, run_id, RunState.FAILED, f"{reason}: {message}", **values)


def _end(session: Session, run_id: UUID, state: RunState, reason: str, **values: Any) -> bool:
    """Run, then jobs, then attempts: a claim that came just before is found by the later statements."""
    now = datetime.now(UTC)
    expected = may_become_run(state)
    if not run_queries.move_run(session, run_id, expected=expected, state=state, finished_at=now, **values):
        return False
    jobs = job_queries.cancel_jobs(session, run_id, now, reason)
    attempt_queries.cancel_attempts(session, jobs, now)
    record(session, run_id, f"run_{state.value}", reason)
    return True
