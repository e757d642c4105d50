"""Named queries on searches for the first bad commit."""

from collections.abc import Sequence
from uuid import UUID

from driftline.contracts.bisect import BisectState
from driftline.contracts.words import JobKind, JobState
from sqlalchemy import Integer, Row, and_, func, select, tuple_
from sqlalchemy.orm import Session

from driftline_service.database.tables import Attempt, Bisect, BisectStep, Job, Run, RunLane


def running_ids(session: Session) -> Sequence[UUID]:
    """Unfinished searches, oldest first."""
    query = select(Bisect.id).where(Bisect.state == BisectState.RUNNING).order_by(Bisect.created_at, Bisect.id)
    return session.scalars(query).all()


def lock(session: Session, bisect_id: UUID) -> Bisect | None:
    """The search, locked until the transaction ends."""
    query = select(Bisect).where(Bisect.id == bisect_id).with_for_update(of=Bisect)
    return session.execute(query.execution_options(populate_existing=True)).scalar_one_or_none()


def steps_of(session: Session, bisect_id: UUID) -> Sequence[BisectStep]:
    """In the order in which they were begun."""
    query = select(BisectStep).where(BisectStep.bisect_id == bisect_id).order_by(BisectStep.number)
    return session.scalars(query.execution_options(populate_existing=True)).all()


def newest(session: Session, *, before: Bisect | None, limit: int) -> Sequence[Bisect]:
    """The newest first; only those older than `before`."""
    query = select(Bisect).order_by(Bisect.created_at.desc(), Bisect.id.desc()).limit(limit)
    if before is not None:
        query = query.where(tuple_(Bisect.created_at, Bisect.id) < tuple_(before.created_at, before.id))
    return session.scalars(query).all()


def runs_of(session: Session, bisect_id: UUID) -> dict[UUID, Row[tuple[UUID, object, str | None]]]:
    """run -> (id, state, verdict) of each step."""
    query = select(Run.id, Run.state, Run.view["verdict"].astext.label("verdict"))
    query = query.join(BisectStep, BisectStep.run_id == Run.id).where(BisectStep.bisect_id == bisect_id)
    return {row[0]: row for row in session.execute(query)}


def questions_asked(session: Session, bisect_id: UUID) -> dict[UUID, int]:
    """run -> questions that its evaluations asked, both arms; those of earlier runs cost nothing."""
    asked = func.sum(func.coalesce(Attempt.asked, RunLane.lane["questions"].astext.cast(Integer)))
    query = (
        select(Job.run_id, asked)
        .join(BisectStep, BisectStep.run_id == Job.run_id)
        .join(Attempt, Attempt.id == Job.adopted_attempt_id)
        .join(RunLane, and_(RunLane.run_id == Job.run_id, RunLane.name == Job.lane_name))
        .where(BisectStep.bisect_id == bisect_id, Job.kind == JobKind.EVALUATE, Job.state == JobState.SUCCEEDED)
        .where(Job.reused_from_job_id.is_(None))
        .group_by(Job.run_id)
    )
    return {row[0]: int(row[1]) for row in session.execute(query)}
