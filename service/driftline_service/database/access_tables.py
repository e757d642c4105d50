"""Who may write, and who did: API tokens and the audit log."""

from datetime import datetime
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, Identity, Index, Text
from sqlalchemy.orm import Mapped, mapped_column

from driftline_service.auth.scopes import Scope
from driftline_service.database import base
from driftline_service.database.base import Base, Json, one_of, word


class ApiToken(Base):
    """A token by its sha256. Its name is what runs and the audit log call its bearer."""

    __tablename__ = "api_tokens"
    __table_args__ = (
        one_of("scope", Scope),
        CheckConstraint("name <> 'admin'", name="name"),
        Index("ix_api_tokens_name", "name", unique=True, postgresql_where="revoked_at is null"),
        Index("ix_api_tokens_token_hash", "token_hash", unique=True),
    )

    id: Mapped[base.Identity]
    name: Mapped[str] = mapped_column(Text)
    scope: Mapped[Scope] = mapped_column(word(Scope))
    token_hash: Mapped[str] = mapped_column(Text)
    created_by: Mapped[str] = mapped_column(Text)
    created_at: Mapped[base.CreatedAt]
    expires_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]


class AuditEntry(Base):
    """One change that a person or program made through the API. Append-only (trigger `append_only`)."""

    __tablename__ = "audit_log"
    __table_args__ = (Index("ix_audit_log_subject", "subject"),)

    id: Mapped[int] = mapped_column(BigInteger, Identity(always=True), primary_key=True)
    at: Mapped[base.CreatedAt]
    actor: Mapped[str] = mapped_column(Text)
    action: Mapped[str] = mapped_column(Text)
    subject: Mapped[UUID | None]
    """the run, token or import that was changed"""
    details: Mapped[Json] = mapped_column(server_default="{}")
