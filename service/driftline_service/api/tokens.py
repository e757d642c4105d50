"""API tokens and the audit log: both for admins."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any
from uuid import UUID

from driftline.contracts.base import Contract, Name
from fastapi import APIRouter, Query
from pydantic import Field
from sqlalchemy.exc import IntegrityError

from driftline_service.api import problems
from driftline_service.api.context import AdminCallerDep, AdminDep, ContextDep, SessionDep
from driftline_service.api.problems import Problem
from driftline_service.auth.scopes import Scope
from driftline_service.auth.token import new_token
from driftline_service.database import audit, token_queries
from driftline_service.database.tables import ApiToken
from driftline_service.dispatch.tokens import hash_of

router = APIRouter(prefix="/api/v1", tags=["access"])

LONGEST_DAYS = 3650


class TokenRequest(Contract):
    name: Name = Field(description="Whose it is; runs and the audit log call its bearer so", examples=["ci of kernels"])
    scope: Scope = Scope.SUBMIT
    days: int | None = Field(default=90, ge=1, le=LONGEST_DAYS, description="Valid for so long; null: until revoked")


class TokenEntry(Contract):
    """A token without itself."""

    id: UUID
    name: str
    scope: Scope
    created_by: str
    created_at: datetime
    expires_at: datetime | None
    last_used_at: datetime | None
    revoked_at: datetime | None
    valid: bool


class NewToken(TokenEntry):
    token: str = Field(description="Shown this once; only its hash is kept")


class TokenList(Contract):
    tokens: list[TokenEntry]


class AuditView(Contract):
    id: int
    at: datetime
    actor: str
    action: str
    subject: UUID | None
    details: dict[str, Any]


class AuditPage(Contract):
    entries: list[AuditView]
    next: str | None


@router.post("/tokens", status_code=201, responses=problems.responses(401, 403, 409, 422))
def create_token(who: AdminCallerDep, body: TokenRequest, found: ContextDep) -> NewToken:
    """Make a token. It is shown in this answer and never again."""
    now, token = datetime.now(UTC), new_token()
    if body.name == "admin":
        raise Problem(409, "name_taken", "the name admin is that of the token in the settings; choose another")
    row = ApiToken(
        name=body.name, scope=body.scope, token_hash=hash_of(token), created_by=who.name, created_at=now,
        expires_at=None if body.days is None else now + timedelta(days=body.days),
    )  # fmt: skip
    try:
        with found.sessions.begin() as session:
            session.add(row)
            session.flush()
            audit.note(session, who.name, "token_created", row.id, name=row.name, scope=row.scope)
            return NewToken(token=token, **_entry(row, now).model_dump())
    except IntegrityError as error:
        raise Problem(
            409, "name_taken", f"a token named {body.name!r} is there; revoke it or choose another"
        ) from error


@router.get("/tokens", dependencies=[AdminDep], responses=problems.responses(401, 403))
def list_tokens(session: SessionDep) -> TokenList:
    """All tokens ever made, the newest first."""
    now = datetime.now(UTC)
    return TokenList(tokens=[_entry(row, now) for row in token_queries.all_tokens(session)])


@router.delete("/tokens/{token_id}", responses=problems.responses(401, 403, 404))
def revoke_token(who: AdminCallerDep, token_id: UUID, found: ContextDep) -> TokenEntry:
    """Revoke a token at once. Runs that its bearer submitted go on."""
    now = datetime.now(UTC)
    with found.sessions.begin() as session:
        row = token_queries.revoke(session, token_id, now)
        if row is None:
            raise Problem(
                404, "unknown_token", f"no token {token_id} that could be revoked; GET /api/v1/tokens lists them"
            )
        audit.note(session, who.name, "token_revoked", token_id, name=row.name)
        return _entry(row, now)


@router.get("/audit", dependencies=[AdminDep], responses=problems.responses(401, 403))
def list_audit(
    session: SessionDep, before: Annotated[int | None, Query(ge=1)] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> AuditPage:  # fmt: skip
    """What was changed through the API and by whom, the newest first."""
    rows = audit.entries(session, before=before, limit=limit)
    views = [
        AuditView(id=r.id, at=r.at, actor=r.actor, action=r.action, subject=r.subject, details=r.details) for r in rows
    ]
    more = f"/api/v1/audit?before={rows[-1].id}&limit={limit}" if len(rows) == limit else None
    return AuditPage(entries=views, next=more)


def _entry(row: ApiToken, now: datetime) -> TokenEntry:
    expired = row.expires_at is not None and row.expires_at <= now
    return TokenEntry(
        id=row.id, name=row.name, scope=row.scope, created_by=row.created_by, created_at=row.created_at,
        expires_at=row.expires_at, last_used_at=row.last_used_at, revoked_at=row.revoked_at,
        valid=row.revoked_at is None and not expired,
    )  # fmt: skip
