"""One look at one run: what its jobs have come to moves it on. Each call is one transaction and may be repeated."""

from datetime import datetime
from typing import Any
from uuid import UUID

from driftline.contracts.words import JobState, RunState
from sqlalchemy.orm import Session

from driftline_service.database import job_queries, run_queries
from driftline_service.database.event_queries import record
from driftline_service.database.tables import Job, Run
from driftline_service.runs import baselines, fresh_pairs, planner
from driftline_service.runs.cancellation import fail
from driftline_service.runs.dispatching import dispatch
from driftline_service.runs.outcomes import title


def advance(session: Session, run_id: UUID, now: datetime) -> RunState:
    """Move the run as far as its jobs allow and give jobs of its phase what they need; the state it is in then."""
    run = run_queries.lock_run(session, run_id)
    while not run.state.finished:
        jobs = job_queries.jobs_of(session, run_id)
        if (gone := planner.source_gone(jobs)) is not None:
            _fail(session, run, gone)
        elif not _moved(session, run, jobs, now):
            return run.state
        session.refresh(run)
    return run.state


def _moved(session: Session, run: Run, jobs: Any, now: datetime) -> bool:
    """Whether the run took one step; if not, its phase's jobs were seen to."""
    sendings = job_queries.sendings_of(session, [job for job in jobs if job.state is JobState.QUEUED])
    baselines.reuse(session, run, planner.in_phase(run.state, jobs), sendings, now)
    following = planner.next_state(run.state, jobs)
    if following is RunState.JUDGING and baselines.revise(session, run, jobs):
        return True  # with a job more: look again
    if fresh_pairs.give_up(session, jobs, now):
        return True
    if following is None:
        phase = planner.in_phase(run.state, jobs)  # a job that was reused may have let others in
        dispatch(session, baselines.not_awaited(session, run, phase, sendings), sendings, now)
        return False
    started = {"started_at": now} if run.state is RunState.QUEUED else {}
    if run_queries.move_run(session, run.id, expected=(run.state,), state=following, **started):
        record(session, run.id, f"run_{following.value}", f"the run is {following.value}")
    return True


def _fail(session: Session, run: Run, job: Job) -> None:
    reason = job.failure_reason or "source_gone"
    fail(session, run.id, reason=reason, message=f"{title(job)}: {job.message}")
