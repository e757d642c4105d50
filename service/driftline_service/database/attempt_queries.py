"""Named queries on attempts and what they reported."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from driftline.contracts.words import AttemptState
from sqlalchemy import Delete, delete, func, select, update
from sqlalchemy.orm import Session

from driftline_service.database.months import lies_in
from driftline_service.database.tables import (
    Attempt,
    Job,
    KernelBuild,
    KernelCase,
    KernelTest,
    Sample,
    TeacherForced,
    TestTolerance,
)


def attempt_by_id(session: Session, attempt_id: UUID) -> Attempt | None:
    return session.get(Attempt, attempt_id, populate_existing=True)


def next_number(session: Session, job_id: UUID) -> int:
    """1 for a job's first attempt."""
    return session.execute(select(func.count() + 1).where(Attempt.job_id == job_id)).scalar_one()


def move_attempt(session: Session, attempt_id: UUID, *, state: AttemptState, now: datetime, **values: Any) -> bool:
    """End a running attempt; True if it was running."""
    statement = update(Attempt).where(Attempt.id == attempt_id, Attempt.state == AttemptState.RUNNING)
    statement = statement.values(state=state, finished_at=now, **values)
    return session.execute(statement.returning(Attempt.id)).scalar_one_or_none() is not None


def failure_reasons(session: Session, job_id: UUID) -> Sequence[str | None]:
    """Why the job's attempts gave nothing, oldest first."""
    query = select(Attempt.failure_reason).where(Attempt.job_id == job_id)
    query = query.where(Attempt.state.in_([AttemptState.FAILED, AttemptState.LOST]))
    return session.scalars(query.order_by(Attempt.number)).all()


def cancel_attempts(session: Session, job_ids: Iterable[UUID], now: datetime) -> None:
    statement = update(Attempt).where(Attempt.job_id.in_(tuple(job_ids)), Attempt.state == AttemptState.RUNNING)
    session.execute(statement.values(state=AttemptState.CANCELLED, finished_at=now))


def expired_attempt_ids(session: Session, now: datetime) -> Sequence[UUID]:
    """Running attempts whose lease is over."""
    query = select(Attempt.id).where(Attempt.state == AttemptState.RUNNING, Attempt.lease_until < now)
    return session.scalars(query.order_by(Attempt.lease_until)).all()


def attempts_of_run(session: Session, run_id: UUID) -> Sequence[Attempt]:
    """All attempts of a run's jobs, oldest first."""
    query = select(Attempt).join(Job, Job.id == Attempt.job_id).where(Job.run_id == run_id)
    return session.scalars(query.order_by(Attempt.job_id, Attempt.number)).all()


def attempts_by_id(session: Session, attempt_ids: Iterable[UUID]) -> dict[UUID, Attempt]:
    found = session.scalars(select(Attempt).where(Attempt.id.in_(tuple(attempt_ids))))
    return {attempt.id: attempt for attempt in found}


def delete_answers(session: Session, attempt_id: UUID) -> None:
    """Forget the answers of an attempt that was not adopted: they can never count, and take the most room."""
    for table in (Sample, TeacherForced):
        _delete(session, delete(table).where(lies_in(session, table, attempt_id)))


def delete_samples_from(session: Session, attempt_id: UUID, rank: int) -> None:
    """Forget answers at this place of the fixed order and beyond: they are no part of the evaluation."""
    _delete(session, delete(Sample).where(lies_in(session, Sample, attempt_id), Sample.rank >= rank))


def _delete(session: Session, statement: Delete) -> None:
    """Without telling the session: it never holds answers."""
    session.execute(statement.execution_options(synchronize_session=False))


def other_arm(session: Session, job: Job) -> Attempt | None:
    """The attempt that counts for the same evaluation of the other arm: adopted, or running now."""
    newest = select(Job).where(Job.run_id == job.run_id, Job.kind == job.kind, Job.lane_name == job.lane_name)
    newest = newest.where(Job.arm != job.arm, Job.pair == job.pair).order_by(Job.generation.desc()).limit(1)
    other = session.scalars(newest.execution_options(populate_existing=True)).one_or_none()
    if other is None or other.import_id is not None:
        return None
    if other.adopted_attempt_id is not None:
        return attempt_by_id(session, other.adopted_attempt_id)
    running = select(Attempt).where(Attempt.job_id == other.id, Attempt.state == AttemptState.RUNNING)
    return session.scalars(running.execution_options(populate_existing=True)).one_or_none()


def sampled_doc_ids(session: Session, attempt_id: UUID) -> set[int]:
    return set(session.scalars(select(Sample.doc_id).where(lies_in(session, Sample, attempt_id))))


def forced_doc_ids(session: Session, attempt_id: UUID) -> set[int]:
    return set(session.scalars(select(TeacherForced.doc_id).where(lies_in(session, TeacherForced, attempt_id))))


def case_count(session: Session, attempt_id: UUID) -> int:
    return session.execute(select(func.count()).where(KernelCase.attempt_id == attempt_id)).scalar_one()


def build_count(session: Session, attempt_id: UUID) -> int:
    return session.execute(select(func.count()).where(KernelBuild.attempt_id == attempt_id)).scalar_one()


def test_count(session: Session, attempt_id: UUID) -> int:
    """Tests and tolerances together."""
    tests = session.execute(select(func.count()).where(KernelTest.attempt_id == attempt_id)).scalar_one()
    return tests + session.execute(select(func.count()).where(TestTolerance.attempt_id == attempt_id)).scalar_one()


def lock_attempt(session: Session, attempt_id: UUID) -> Attempt:
    """The attempt, locked until the transaction ends; its job is locked before it.

    Raises:
        sqlalchemy.exc.NoResultFound: if there is no such attempt.
    """
    query = select(Attempt).where(Attempt.id == attempt_id).with_for_update(key_share=True)
    return session.execute(query.execution_options(populate_existing=True)).scalar_one()
