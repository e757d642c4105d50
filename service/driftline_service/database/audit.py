"""The audit log: what was changed through the API, by whom. Written in the transaction of the change itself."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.orm import Session

from driftline_service.database.access_tables import AuditEntry


def note(session: Session, actor: str, action: str, subject: UUID | None = None, **details: Any) -> None:
    """Add an entry; `details` must be JSON."""
    session.add(AuditEntry(actor=actor, action=action, subject=subject, details=details))


def entries(session: Session, *, before: int | None, limit: int) -> Sequence[AuditEntry]:
    """The newest first; `before` is the id above the page."""
    query = select(AuditEntry).order_by(AuditEntry.id.desc()).limit(limit)
    return session.scalars(query if before is None else query.where(AuditEntry.id < before)).all()
