"""Named queries on the outbox and the claim tokens its messages carry."""

from datetime import datetime
from uuid import UUID

from driftline.contracts.words import JobState
from sqlalchemy import delete, func, select, update
from sqlalchemy.orm import Session

from driftline_service.database.tables import ClaimToken, Job, OutboxMessage, Run
from driftline_service.runs.priority import priority_of


def enqueue(session: Session, job_id: UUID, not_before: datetime) -> None:
    """A message to be sent once this transaction has committed and `not_before` has come."""
    session.add(OutboxMessage(job_id=job_id, not_before=not_before))


def next_due(session: Session, now: datetime) -> tuple[OutboxMessage, Job, int] | None:
    """The most urgent message and its priority, of equals the one that has waited longest; locked, another sender skips it."""
    urgency = priority_of(Run)
    query = (
        select(OutboxMessage, Job, urgency)
        .join(Job, Job.id == OutboxMessage.job_id)
        .join(Run, Run.id == Job.run_id)
        .where(OutboxMessage.sent_at.is_(None), OutboxMessage.not_before <= now)
        .order_by(urgency, OutboxMessage.not_before, OutboxMessage.created_at)
        .limit(1)
        .with_for_update(skip_locked=True, of=OutboxMessage)
    )
    row = session.execute(query.execution_options(populate_existing=True)).one_or_none()
    return None if row is None else (row[0], row[1], row[2])


def mark_sent(session: Session, message_id: UUID, now: datetime) -> None:
    session.execute(update(OutboxMessage).where(OutboxMessage.id == message_id).values(sent_at=now, last_error=None))


def last_sent_before(session: Session, job_id: UUID, moment: datetime) -> datetime | None:
    """When the message went out that a claim of that moment answered."""
    query = select(func.max(OutboxMessage.sent_at)).where(OutboxMessage.job_id == job_id)
    return session.execute(query.where(OutboxMessage.sent_at <= moment)).scalar_one()


def first_sent(session: Session, job_id: UUID) -> datetime | None:
    """When the job was first offered to workers."""
    return session.execute(select(func.min(OutboxMessage.sent_at)).where(OutboxMessage.job_id == job_id)).scalar_one()


def postpone(session: Session, message_id: UUID, not_before: datetime, error: str) -> None:
    values = {"not_before": not_before, "last_error": error}
    session.execute(update(OutboxMessage).where(OutboxMessage.id == message_id).values(values))


def use_claim_token(session: Session, token_hash: str, job_id: UUID, now: datetime) -> bool:
    """Spend the token; False if it is unknown, another job's, spent or expired."""
    statement = (
        update(ClaimToken)
        .where(ClaimToken.token_hash == token_hash, ClaimToken.job_id == job_id)
        .where(ClaimToken.used_at.is_(None), ClaimToken.expires_at > now)
        .values(used_at=now)
    )
    return session.execute(statement.returning(ClaimToken.job_id)).scalar_one_or_none() is not None


def sweep(session: Session, before: datetime) -> None:
    """Drop tokens that expired and messages of jobs that finished before then."""
    session.execute(delete(ClaimToken).where(ClaimToken.expires_at < before))
    finished = select(Job.id).where(Job.finished_at < before, Job.state.in_([s for s in JobState if s.finished]))
    session.execute(delete(OutboxMessage).where(OutboxMessage.job_id.in_(finished)))
