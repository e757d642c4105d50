"""Named queries on the event log. It is only ever added to."""

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from driftline_service.database.tables import Event


def record(session: Session, run_id: UUID, kind: str, message: str = "", *, job_id: UUID | None = None) -> None:
    """Append one event in the caller's transaction; listeners hear of it at commit."""
    session.add(Event(run_id=run_id, job_id=job_id, kind=kind, message=message))


def events_of(session: Session, run_id: UUID, *, after: int = 0) -> Sequence[Event]:
    """The run's events with an id above `after`, oldest first."""
    query = select(Event).where(Event.run_id == run_id, Event.id > after).order_by(Event.id)
    return session.scalars(query).all()
