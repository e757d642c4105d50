"""Named queries on jobs. State changes are conditional updates from an expected state."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any
from uuid import UUID

from driftline.contracts.words import JobState, RunState
from sqlalchemy import Select, bindparam, func, or_, select, tuple_, update
from sqlalchemy.orm import Session, aliased

from driftline_service.database.run_queries import ACTIVE
from driftline_service.database.tables import Attempt, Job, OutboxMessage, Run, RunLane
from driftline_service.runs.priority import priority_of

UNFINISHED = (JobState.QUEUED, JobState.RUNNING)


@dataclass(frozen=True, slots=True)
class Baseline:
    """An adopted attempt of an earlier run that stands for the same work."""

    job_id: UUID
    run_id: UUID
    attempt_id: UUID


@dataclass(frozen=True, slots=True)
class Sendings:
    """What the outbox knows of one job."""

    waiting: int
    sent: int
    last_sent_at: datetime | None
    attempts: int


def jobs_of(session: Session, run_id: UUID) -> Sequence[Job]:
    """All jobs of a run, older generations too."""
    query = select(Job).where(Job.run_id == run_id).order_by(Job.created_at, Job.kind, Job.lane_name, Job.arm, Job.id)
    return session.scalars(query.execution_options(populate_existing=True)).all()


def lock_job(session: Session, job_id: UUID) -> Job | None:
    query = select(Job).where(Job.id == job_id).with_for_update(key_share=True)
    return session.execute(query.execution_options(populate_existing=True)).scalar_one_or_none()


def move_job(session: Session, job_id: UUID, *, expected: Iterable[JobState], state: JobState, **values: Any) -> bool:
    """Change the job's state if it is one of those expected; True if it was."""
    statement = update(Job).where(Job.id == job_id, Job.state.in_(tuple(expected))).values(state=state, **values)
    return session.execute(statement.returning(Job.id)).scalar_one_or_none() is not None


def cancel_jobs(session: Session, run_id: UUID, now: datetime, reason: str) -> Sequence[UUID]:
    """Cancel the run's unfinished jobs; their ids."""
    statement = update(Job).where(Job.run_id == run_id, Job.state.in_(UNFINISHED))
    statement = statement.values(state=JobState.CANCELLED, finished_at=now, message=reason)
    return session.scalars(statement.returning(Job.id)).all()


def run_state(session: Session, run_id: UUID) -> RunState:
    return session.execute(select(Run.state).where(Run.id == run_id)).scalar_one()


def sendings_of(session: Session, jobs: Iterable[Job]) -> dict[UUID, Sendings]:
    """job -> how often its message went out, and how many attempts came of it. One query, however many jobs."""
    if not (ids := [job.id for job in jobs]):
        return {}
    attempts = select(func.count()).where(Attempt.job_id == Job.id).scalar_subquery()
    sent = func.count(OutboxMessage.sent_at)
    query = (
        select(Job.id, func.count(OutboxMessage.id) - sent, sent, func.max(OutboxMessage.sent_at), attempts)
        .outerjoin(OutboxMessage, OutboxMessage.job_id == Job.id)
        .where(Job.id.in_(ids))
        .group_by(Job.id)
    )
    return {job_id: Sendings(*told) for job_id, *told in session.execute(query)}


def baseline_of(session: Session, job: Job, environment_id: str) -> Baseline | None:
    """The newest finished work of another run on the same commit, kernels, kind, lane and environment."""
    run = session.get_one(Run, job.run_id)
    query = (
        select(Job.id, Job.run_id, Attempt.id)
        .join(Run, Run.id == Job.run_id)
        .join(Attempt, Attempt.id == Job.adopted_attempt_id)
        .where(Run.repository_id == run.repository_id, Run.layout == run.layout, Job.run_id != job.run_id)
        .where(Job.commit_sha == job.commit_sha, Job.kernel_path == job.kernel_path, Job.kind == job.kind)
        .where(Job.lane_hash.is_not_distinct_from(job.lane_hash), Job.reused_from_job_id.is_(None))
        .where(Job.state == JobState.SUCCEEDED, Attempt.environment_id == environment_id)
        .where(Attempt.asked.is_(None))  # one that was stopped early is no evaluation of all questions
        .order_by(Job.finished_at.desc())
        .limit(1)
    )
    row = session.execute(query).one_or_none()
    return None if row is None else Baseline(*row)


def is_measured_by_an_earlier_run(session: Session, job: Job) -> bool:
    """Whether an earlier run is about to do this very work: then it will be a baseline soon. Later runs never count, so
    that no two wait for each other; nor do evaluations that may stop early, which then are no baselines."""
    run = session.get_one(Run, job.run_id)
    given = {
        "run": run.id, "at": run.created_at, "repository": run.repository_id, "layout": run.layout, "sha": job.commit_sha,
        "path": job.kernel_path, "kind": job.kind, "lane_hash": job.lane_hash,
    }  # fmt: skip
    return session.execute(_earlier_work(), given).first() is not None


@cache
def _earlier_work() -> Select[UUID]:
    """Made once: the reconciler asks it of each waiting base job at each look, and making it took longer than its answer."""
    earlier = aliased(Run)
    may_stop = select(RunLane.name).where(RunLane.run_id == Job.run_id, RunLane.name == Job.lane_name)
    may_stop = may_stop.where(RunLane.lane["early_stopping"].astext == "true")
    # Nobody waits behind a baseline of main that is not even begun.
    ours = select(priority_of(Run)).where(Run.id == bindparam("run")).scalar_subquery()
    soon = or_(Job.state == JobState.RUNNING, priority_of(earlier) <= ours)
    before = tuple_(earlier.created_at, earlier.id) < tuple_(
        bindparam("at", type_=Run.created_at.type), bindparam("run")
    )
    return (
        select(Job.id)
        .join(earlier, earlier.id == Job.run_id)
        .where(earlier.repository_id == bindparam("repository"), earlier.layout == bindparam("layout"), before)
        .where(Job.commit_sha == bindparam("sha"), Job.kernel_path == bindparam("path"), Job.kind == bindparam("kind"))
        .where(Job.lane_hash.is_not_distinct_from(bindparam("lane_hash")), Job.state.in_(UNFINISHED))
        .where(~may_stop.exists(), soon)
        .limit(1)
    )


def runs_of_jobs(session: Session, job_ids: Iterable[UUID]) -> dict[UUID, UUID]:
    """job -> its run."""
    rows = session.execute(select(Job.id, Job.run_id).where(Job.id.in_(tuple(job_ids))))
    return {job_id: owner for job_id, owner in rows.all()}  # noqa: C416 - a Row is no pair to mypy


def runs_before(session: Session, run_id: UUID) -> int:
    """Unfinished runs that are served sooner on a queue that the run still needs."""
    this, their_job, own_job = aliased(Run), aliased(Job), aliased(Job)
    own = select(own_job.queue).where(own_job.run_id == run_id, own_job.state.in_(UNFINISHED))
    sooner = tuple_(priority_of(Run), Run.created_at) < tuple_(priority_of(this), this.created_at)
    query = select(func.count(Run.id.distinct())).select_from(Run).join(their_job, their_job.run_id == Run.id)
    query = query.join(this, this.id == run_id).where(Run.id != run_id, Run.state.in_(ACTIVE), sooner)
    return session.scalars(query.where(their_job.state.in_(UNFINISHED), their_job.queue.in_(own))).one()
