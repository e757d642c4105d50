"""Named queries on the outbox and the claim tokens its messages carry."""

from collections.abc import Iterable, Mapping
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


def due(session: Session, now: datetime, most: int) -> list[tuple[OutboxMessage, Job, int]]:
    """The most urgent messages and their priorities, of equals those that have waited longest; locked, another sender skips
    them."""
    urgency = priority_of(Run)
    query = (
        select(OutboxMessage, Job, urgency)
        .join(Job, Job.id == OutboxMessage.job_id)
        .join(Run, Run.id == Job.run_id)
        .where(OutboxMessage.sent_at.is_(None), OutboxMessage.not_before <= now)
        .order_by(urgency, OutboxMessage.not_before, OutboxMessage.created_at)
        .limit(most)
        .with_for_update(skip_locked=True, of=OutboxMessage)
    )
    rows = session.execute(query.execution_options(populate_existing=True))
    return [(message, job, priority) for message, job, priority in rows]


def mark_sent(session: Session, sent: Mapping[UUID, datetime]) -> None:
    """message -> when it went."""
    values = [{"id": message_id, "sent_at": at, "last_error": None} for message_id, at in sent.items()]
    if values:
        session.execute(update(OutboxMessage), values)


def last_sent_before(session: Session, job_id: UUID, moment: datetime) -> datetime | None:
    """When the message went out that a claim of that moment answered."""
    query = select(func.max(OutboxMessage.sent_at)).where(OutboxMessage.job_id == job_id)
    return session.execute(query.where(OutboxMessage.sent_at <= moment)).scalar_one()


def first_sent(session: Session, job_id: UUID) -> datetime | None:
    """When the job was first offered to workers."""
    return session.execute(select(func.min(OutboxMessage.sent_at)).where(OutboxMessage.job_id == job_id)).scalar_one()


def postpone(session: Session, message_id: UUID, not_before: datetime, error: str) -> None:
    """Once more, then: it was tried."""
    values = {"not_before": not_before, "last_error": error, "tries": OutboxMessage.tries + 1}
    session.execute(update(OutboxMessage).where(OutboxMessage.id == message_id).values(values))


def forget_tokens(session: Session, token_hashes: Iterable[str]) -> None:
    """Of messages that did not go."""
    session.execute(delete(ClaimToken).where(ClaimToken.token_hash.in_(tuple(token_hashes))))


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
