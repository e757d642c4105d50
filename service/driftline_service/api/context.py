"""What routes need, made once by the composition root and handed out by typed dependencies."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, cast

from fastapi import Cookie, Depends, Header, Request
from sqlalchemy.orm import Session, sessionmaker

from driftline_service.api.problems import Problem
from driftline_service.api.wakeups import Wakeups
from driftline_service.auth.caller import Caller, caller_of
from driftline_service.auth.scopes import Scope
from driftline_service.auth.token import AdminToken
from driftline_service.github.deliveries import Deliveries
from driftline_service.lanes import Lanes
from driftline_service.metrics.served import Served
from driftline_service.settings import Settings


@dataclass(frozen=True, slots=True)
class Context:
    """The parts of one application."""

    settings: Settings
    lanes: Lanes
    sessions: sessionmaker[Session]
    admin: AdminToken
    wakeups: Wakeups
    served: Served
    deliveries: Deliveries


def context(request: Request) -> Context:
    return cast(Context, request.app.state.context)


async def _context(request: Request) -> Context:
    """Async though it awaits nothing: FastAPI sends what is not through a thread, on every request."""
    return context(request)


ContextDep = Annotated[Context, Depends(_context)]


def session(found: ContextDep) -> Iterator[Session]:
    with found.sessions() as opened:
        yield opened


SessionDep = Annotated[Session, Depends(session)]


def given_token(authorization: str | None, cookie: str | None, *, reading: bool) -> str | None:
    """The token of a request. A cookie counts for reading alone, so no page elsewhere can write through a browser.

    Raises:
        Problem: 401 if the header is no bearer's.
    """
    if authorization is None:
        return cookie if reading else None
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token.strip():
        raise Problem(401, "unauthorized", "the header must read `Authorization: Bearer TOKEN`", headers=CHALLENGE)
    return token.strip()


def caller(found: Context, token: str) -> Caller:
    """Whose token that is.

    Raises:
        Problem: 403 if it is unknown, expired or revoked.
    """
    with found.sessions.begin() as opened:
        known = caller_of(opened, found.admin, token, datetime.now(UTC))
    if known is None:
        raise Problem(403, "forbidden", "this token is unknown, expired or revoked; ask an admin for another")
    return known


class Requires:
    """A dependency that lets only tokens of a scope pass, and says who calls."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope

    def __call__(self, found: ContextDep, authorization: Annotated[str | None, Header()] = None) -> Caller:
        """The caller.

        Raises:
            Problem: 401 without a token, 403 with a wrong one or one that allows less.
        """
        token = given_token(authorization, None, reading=False)
        if token is None:
            detail = (
                "writing needs `Authorization: Bearer TOKEN`; `driftline serve` prints the file that holds the token"
            )
            raise Problem(401, "unauthorized", detail, headers=CHALLENGE)
        known = caller(found, token)
        if not known.scope.allows(self._scope):
            detail = f"token {known.name!r} has the scope {known.scope}; this needs {self._scope}"
            raise Problem(403, "wrong_scope", detail)
        return known


def may_read(
    found: ContextDep,
    authorization: Annotated[str | None, Header()] = None,
    driftline_token: Annotated[str | None, Cookie()] = None,
) -> None:
    """Anybody, unless the service is private: then a token of any scope, as bearer or from the login page.

    Raises:
        Problem: 401 without a token, 403 with a wrong one.
    """
    if not found.settings.private:
        return
    token = given_token(authorization, driftline_token, reading=True)
    if token is None:
        detail = "this service is private: send `Authorization: Bearer TOKEN`, or log in at /login"
        raise Problem(401, "unauthorized", detail, headers=CHALLENGE)
    caller(found, token)


CHALLENGE = {"WWW-Authenticate": "Bearer"}

AdminDep = Depends(Requires(Scope.ADMIN))
SubmitterDep = Annotated[Caller, Depends(Requires(Scope.SUBMIT))]
AdminCallerDep = Annotated[Caller, AdminDep]
ReadDep = Depends(may_read)
