"""Every error as application/problem+json (RFC 9457) with a reason code. Texts are where the error is known."""

import errno
from collections.abc import Mapping
from http import HTTPStatus
from math import ceil
from typing import Any

import psycopg
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from psycopg import errors as postgres_errors
from pydantic import BaseModel, Field
from sqlalchemy.exc import DBAPIError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from driftline_service.api.disk_space import shortage
from driftline_service.intake.refusal import Refusal
from driftline_service.logs import about, logger

MEDIA_TYPE = "application/problem+json"

HUNG_UP = "driftline.hung_up"
"""Set in the scope of a request whose client left in the middle of its body (api/hang_up.py)."""

LONGEST_LOGGED_PATH = 200
"""Strangers choose it."""

REASONS = {
    HTTPStatus.NOT_FOUND: "not_found",
    HTTPStatus.METHOD_NOT_ALLOWED: "method_not_allowed",
    HTTPStatus.UNAUTHORIZED: "unauthorized",
    HTTPStatus.FORBIDDEN: "forbidden",
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE: "body_too_large",
}

_log = logger("driftline.api")


class ProblemBody(BaseModel):
    """The body of every error."""

    type: str = Field(default="about:blank", examples=["urn:driftline:problem:unknown_commit"])
    title: str = Field(examples=["Unprocessable Entity"])
    status: int = Field(examples=[422])
    detail: str = Field(examples=["https://example.org/kernels.git has no commit 'deadbeef'; push it first"])
    instance: str = Field(examples=["/api/v1/runs"])
    reason: str = Field(description="What a program should look at", examples=["unknown_commit"])
    errors: list[dict[str, Any]] | None = Field(default=None, description="For reason `malformed`: field by field")


class Problem(Exception):  # noqa: N818 - RFC 9457's own word
    """An error with a status and a reason code, raised where it is known."""

    def __init__(self, status: int, reason: str, detail: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.reason = reason
        self.detail = detail
        self.headers = dict(headers or {})


def body(
    *, status: int, reason: str, detail: str, instance: str, errors: list[dict[str, Any]] | None = None
) -> dict[str, Any]:
    """The JSON of one problem."""
    problem = ProblemBody(
        type=f"urn:driftline:problem:{reason}", title=HTTPStatus(status).phrase, status=status, detail=detail,
        instance=instance, reason=reason, errors=errors,
    )  # fmt: skip
    return problem.model_dump(exclude_none=True)


def register(app: FastAPI) -> None:
    """Install the handlers. What reaches the last, the root handler, is a bug, and is logged with its run."""
    app.add_exception_handler(Problem, _problem)
    app.add_exception_handler(Refusal, _refusal)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _validation)
    app.add_exception_handler(ClientDisconnect, _hung_up)
    app.add_exception_handler(DBAPIError, _database)
    app.add_exception_handler(psycopg.Error, _database)  # of connections that are not SQLAlchemy's
    app.add_exception_handler(Exception, _bug)


def note_refusal(scope: Scope, *, status: int, reason: str) -> None:
    """A line in the log for what a caller got wrong. Faults of ours are logged where they are known."""
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR or scope.get(HUNG_UP):
        return
    ids = scope.get("path_params", {})
    with about(run_id=ids.get("run_id"), job_id=ids.get("job_id")):
        path = scope["path"][:LONGEST_LOGGED_PATH]
        _log.info("request_refused", method=scope["method"], path=path, status=status, reason=reason)


async def refuse(
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    status: int,
    reason: str,
    detail: str,
    headers: Mapping[str, str] | None = None,
) -> None:
    """Answer a request from a middleware, before any route sees it."""
    answer = _answer(scope, status=status, reason=reason, detail=detail, headers=headers)
    await answer(scope, receive, send)


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """OpenAPI's description of the errors a route may answer."""
    content = {MEDIA_TYPE: {"schema": ProblemBody.model_json_schema()}}
    return {status: {"description": HTTPStatus(status).phrase, "content": content} for status in statuses}


def _answer(scope: Scope, *, status: int, reason: str, detail: str, **more: Any) -> JSONResponse:
    headers = more.pop("headers", None)
    note_refusal(scope, status=status, reason=reason)
    content = body(status=status, reason=reason, detail=detail, instance=scope["path"], **more)
    return JSONResponse(content, status_code=status, media_type=MEDIA_TYPE, headers=headers)


async def _problem(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Problem)  # noqa: S101 - registered for it alone; so below
    return _answer(request.scope, status=error.status, reason=error.reason, detail=error.detail, headers=error.headers)


async def _refusal(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refusal)  # noqa: S101
    headers = (
        None if error.retry_after is None else {"Retry-After": str(max(1, ceil(error.retry_after.total_seconds())))}
    )
    return _answer(request.scope, status=error.status, reason=error.reason, detail=str(error), headers=headers)


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)  # noqa: S101
    reason, detail = REASONS.get(HTTPStatus(error.status_code), "http_error"), str(error.detail)
    if error.status_code == HTTPStatus.BAD_REQUEST:  # FastAPI's own: no UTF-8, or endless nesting
        reason, detail = "malformed", "the body cannot be read as JSON in UTF-8; see /docs for an example"
    return _answer(request.scope, status=error.status_code, reason=reason, detail=detail, headers=error.headers)


async def _validation(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)  # noqa: S101
    found = [
        {"field": ".".join(str(part) for part in item["loc"]), "message": str(item["msg"]), "type": str(item["type"])}
        for item in error.errors()
    ]
    first = found[0]
    return _answer(
        request.scope,
        status=422,
        reason="malformed",
        detail=f"{first['field']}: {first['message']}; see /docs for an example",
        errors=found,
    )


async def _hung_up(request: Request, _error: Exception) -> JSONResponse:
    """Nobody hears this answer. It only counts the request as the client's mistake (api/hang_up.py logs it)."""
    return _answer(request.scope, status=400, reason="hung_up", detail="the connection ended within the body")


async def _database(request: Request, error: Exception) -> JSONResponse:
    """What PostgreSQL cannot do just now is told as such; any other database error is a bug."""
    assert isinstance(error, DBAPIError | psycopg.Error)  # noqa: S101
    told = error.orig if isinstance(error, DBAPIError) else error
    lost = isinstance(error, DBAPIError) and error.connection_invalidated
    if isinstance(told, postgres_errors.DiskFull):
        _log.error("disk_full", path=request.url.path)
        return _answer(
            request.scope,
            status=507,
            reason="disk_full",
            detail="the database's disk is full; free space and try again",
        )
    if isinstance(told, psycopg.OperationalError) or lost:
        _log.warning("database_unavailable", path=request.url.path, error=str(told))
        detail = "the database does not answer just now; nothing was stored, "
        detail += shortage(getattr(request.app.state, "settings", None)) or "try again in a moment"
        return _answer(
            request.scope, status=503, reason="database_unavailable", detail=detail, headers={"Retry-After": "2"}
        )
    return await _bug(request, error)


async def _bug(request: Request, error: Exception) -> JSONResponse:
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        _log.error("disk_full", path=request.url.path, file=error.filename)
        return _answer(
            request.scope, status=507, reason="disk_full", detail="the service's disk is full; free space, try again"
        )
    ids = request.path_params
    with about(run_id=ids.get("run_id"), job_id=ids.get("job_id")):
        _log.error("unhandled_error", method=request.method, path=request.url.path, exc_info=error)
    detail = "the service failed on this request; its log says why"
    return _answer(request.scope, status=500, reason="internal_error", detail=detail)
