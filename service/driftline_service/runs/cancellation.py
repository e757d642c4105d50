"""Ending a run before its verdict: cancelled by a person, or superseded by a newer head."""

from uuid import UUID

from sqlalchemy.orm import Session


def cancel(session: Session, run_id: UUID, reason: str) -> bool:
    """Cancel the run and its unfinished jobs in the caller's transaction. False if it was finished already."""
    raise NotImplementedError


def supersede(session: Session, run_id: UUID, by_run_id: UUID) -> bool:
    """As `cancel`, because a newer run of the same head replaces this one."""
    raise NotImplementedError
