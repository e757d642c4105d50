"""What routes need, made once by the composition root and handed out by typed dependencies."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Header, Request
from sqlalchemy.orm import Session, sessionmaker

from driftline_service.api.problems import Problem
from driftline_service.api.wakeups import Wakeups
from driftline_service.auth.token import AdminToken
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


def context(request: Request) -> Context:
    return cast(Context, request.app.state.context)


ContextDep = Annotated[Context, Depends(context)]


def session(found: ContextDep) -> Iterator[Session]:
    with found.sessions() as opened:
        yield opened


SessionDep = Annotated[Session, Depends(session)]


def require_admin(found: ContextDep, authorization: Annotated[str | None, Header()] = None) -> None:
    """Let only the bearer of the admin token pass.

    Raises:
        Problem: 401 without a token, 403 with a wrong one or if none is configured.
    """
    if authorization is None:
        detail = "writing needs `Authorization: Bearer TOKEN`; `driftline serve` prints the file that holds the token"
        raise Problem(401, "unauthorized", detail, headers={"WWW-Authenticate": "Bearer"})
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not found.admin.matches(token.strip()):
        raise Problem(403, "forbidden", "this is not the admin token of this service")


AdminDep = Depends(require_admin)
