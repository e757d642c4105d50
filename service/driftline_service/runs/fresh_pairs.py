"""A first hit is measured once more: the run goes back to evaluating with a fresh pair of each lane that has one.

Both arms are evaluated anew, by another worker where there is one, and never from what was measured before. Judging is
driftline.judge's; a fresh pair that does not come leaves a hit suspected, and never holds the run for ever.
"""

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta
from uuid import UUID

from driftline.contracts.lane import Lane
from driftline.contracts.words import JobKind, JobState, RunState
from driftline.contracts.worker_api import WorkerFacts
from sqlalchemy.orm import Session

from driftline_service.database import attempt_queries, job_queries, outbox_queries, run_queries, worker_queries
from driftline_service.database.event_queries import record
from driftline_service.database.tables import Job
from driftline_service.judging.fresh import FRESH
from driftline_service.runs import planner
from driftline_service.runs.forecast import remaining_seconds
from driftline_service.runs.outcomes import title

UNCLAIMED = timedelta(hours=1)
"""So long a later pair waits for a worker where none is at work; the workers that measured the first pair are gone then."""

LONGEST_WAIT = timedelta(days=1)
"""So long it waits at most, however busy they are. One that runs is bounded by its lease and its child's limits."""

ANOTHER_WORKER = timedelta(minutes=2)
"""So long a later pair waits for another worker than the one that measured the first; then any will do."""

ASKED_AGAIN = timedelta(seconds=5)
"""After which its message goes round again."""


def plan(session: Session, run_id: UUID, lanes: Collection[str], now: datetime) -> bool:
    """Give each of these lanes a fresh pair and let the run evaluate again; False if it is not being judged any more."""
    if not run_queries.move_run(session, run_id, expected=(RunState.JUDGING,), state=RunState.EVALUATING):
        return False
    first = [
        job
        for job in planner.deciding(job_queries.jobs_of(session, run_id))
        if job.kind is JobKind.EVALUATE and job.lane_name in lanes
    ]
    session.add_all(_once_more(job) for job in first)
    session.flush()
    seconds = remaining_seconds(session, run_id, now)
    cost = "" if seconds is None else f" (about {max(round(seconds / 60), 1)} min of work)"
    told = f"suspected on {', '.join(lanes)}: a fresh pair is measured to confirm it{cost}"
    record(session, run_id, "confirmation_planned", told)
    return True


def give_up(session: Session, jobs: Iterable[Job], now: datetime) -> bool:
    """Cancel jobs of later pairs that no worker took in time; True if there was any."""
    current = planner.current(jobs)
    overdue = [
        job for job in current if job.pair and job.state is JobState.QUEUED and _is_overdue(session, job, current, now)
    ]
    for job in overdue:
        reason = (
            f"no worker took it for {_hours(LONGEST_WAIT if worker_queries.is_busy(session, job.queue) else UNCLAIMED)}"
        )
        values = {"finished_at": now, "message": reason}
        if job_queries.move_job(session, job.id, expected=(JobState.QUEUED,), state=JobState.CANCELLED, **values):
            record(session, job.run_id, "job_cancelled", f"{title(job)}: {reason}", job_id=job.id)
    return bool(overdue)


def left_to_another(session: Session, job: Job, facts: WorkerFacts, now: datetime) -> bool:
    """Whether this worker should leave a later pair's job alone: it measured the same arm in the first pair, and there
    is another that could. The message goes round again, in the caller's transaction."""
    if job.pair == 0 or not _measured_the_first(session, job, facts.name):
        return False
    asked = outbox_queries.first_sent(session, job.id)
    if asked is None or asked + ANOTHER_WORKER < now:
        return False
    gpu_type = Lane.model_validate(run_queries.lane_of(session, job.run_id, job.lane_name or "").lane).gpu_type
    if not worker_queries.is_another(session, gpu_type, now, than={facts.name}, environment_id=facts.environment_id):
        return False
    outbox_queries.enqueue(session, job.id, now + ASKED_AGAIN)
    return True


def _once_more(job: Job) -> Job:
    return Job(
        run_id=job.run_id, kind=job.kind, arm=job.arm, commit_sha=job.commit_sha, kernel_path=job.kernel_path,
        lane_name=job.lane_name, lane_hash=job.lane_hash, queue=job.queue, pair=FRESH, generation=0,
        state=JobState.QUEUED,
    )  # fmt: skip


def _is_overdue(session: Session, job: Job, jobs: Iterable[Job], now: datetime) -> bool:
    """Counted from when the pair before it was over."""
    before = [other for other in jobs if other.lane_name == job.lane_name and other.pair < job.pair]
    ends = [other.finished_at for other in before if other.finished_at is not None]
    if len(ends) < len(before):
        return False
    waited = now - max(ends, default=job.created_at)
    return waited > LONGEST_WAIT or (waited > UNCLAIMED and not worker_queries.is_busy(session, job.queue))


def _measured_the_first(session: Session, job: Job, worker: str) -> bool:
    first = [
        each.adopted_attempt_id
        for each in planner.deciding(job_queries.jobs_of(session, job.run_id))
        if (each.kind, each.arm, each.lane_name) == (job.kind, job.arm, job.lane_name)
    ]
    attempts = attempt_queries.attempts_by_id(session, [each for each in first if each is not None])
    return any(attempt.worker_name == worker for attempt in attempts.values())


def _hours(wait: timedelta) -> str:
    hours = wait // timedelta(hours=1)
    return "an hour" if hours == 1 else f"{hours} hours"
