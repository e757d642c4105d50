"""Who a request comes from: the bearer of the admin token, of an API token, or nobody known."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy.orm import Session

from driftline_service.auth.scopes import Scope
from driftline_service.auth.token import AdminToken
from driftline_service.database import token_queries
from driftline_service.dispatch.tokens import hash_of


@dataclass(frozen=True, slots=True)
class Caller:
    """A name for logs, runs and the audit log, and what it may do."""

    name: str
    scope: Scope


ADMIN = Caller("admin", Scope.ADMIN)
"""The bearer of the token from the settings; all others are made by it."""


def caller_of(session: Session, admin: AdminToken, given: str, now: datetime) -> Caller | None:
    """Whose token `given` is, noting its use; None if it is unknown, expired or revoked."""
    if admin.matches(given):
        return ADMIN
    found = token_queries.use(session, hash_of(given), now)
    return None if found is None else Caller(found.name, found.scope)
