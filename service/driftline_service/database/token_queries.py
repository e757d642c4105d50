"""Named queries on API tokens."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from uuid import UUID

from sqlalchemy import or_, select, update
from sqlalchemy.orm import Session

from driftline_service.database.access_tables import ApiToken

USE_NOTED_EVERY = timedelta(minutes=1)
"""A busy token's last use is written so often and not at every request."""


def use(session: Session, token_hash: str, now: datetime) -> ApiToken | None:
    """The token of that hash if it is valid, its use noted in the caller's transaction."""
    found = session.scalar(
        select(ApiToken)
        .where(ApiToken.token_hash == token_hash, ApiToken.revoked_at.is_(None))
        .where(or_(ApiToken.expires_at.is_(None), ApiToken.expires_at > now))
    )
    if found is not None and (found.last_used_at is None or now - found.last_used_at > USE_NOTED_EVERY):
        found.last_used_at = now
    return found


def all_tokens(session: Session) -> Sequence[ApiToken]:
    """Valid, expired and revoked ones, the newest first."""
    return session.scalars(select(ApiToken).order_by(ApiToken.created_at.desc(), ApiToken.name)).all()


def named(session: Session, name: str) -> ApiToken | None:
    """The one of that name that is not revoked."""
    return session.scalar(select(ApiToken).where(ApiToken.name == name, ApiToken.revoked_at.is_(None)))


def revoke(session: Session, token_id: UUID, now: datetime) -> ApiToken | None:
    """Revoke a token once; None if it is unknown or revoked already."""
    return session.scalar(
        update(ApiToken).where(ApiToken.id == token_id, ApiToken.revoked_at.is_(None)).values(revoked_at=now)
        .returning(ApiToken)
    )  # fmt: skip
