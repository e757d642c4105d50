"""Errors of pages as pages: people follow links, programs have the API's problem+json."""

from collections.abc import Callable, Coroutine
from typing import Any
from urllib.parse import quote

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import RedirectResponse, Response
from fastapi.routing import APIRoute
from sqlalchemy.exc import OperationalError

from driftline_service.api.context import context
from driftline_service.api.disk_space import shortage
from driftline_service.api.problems import Problem, note_refusal
from driftline_service.logs import logger
from driftline_service.pages import renderer

_log = logger("driftline.pages")


class NotFound(Exception):  # noqa: N818 - the status' own name
    """There is no such page; the message says what there is not."""


class PageRoute(APIRoute):
    """Answers 404, 422 and 503 in HTML. Anything else is a bug and goes on to the root handler."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def handle_as_page(request: Request) -> Response:
            try:
                return await handle(request)
            except NotFound as error:
                return _page(request, status=404, title="Not found", detail=str(error))
            except Problem as error:
                if error.status in (401, 403):  # a private service, and a reader it does not know
                    note_refusal(request.scope, status=error.status, reason=error.reason)
                    return RedirectResponse(_login_address(request), status_code=303)
                raise
            except RequestValidationError as error:
                fields = ", ".join(".".join(map(str, found["loc"][1:])) for found in error.errors())
                return _page(request, status=422, title="Not a page", detail=f"this address has a wrong part: {fields}")
            except OperationalError as error:
                _log.warning("database_unavailable", path=request.url.path, error=str(error.orig))
                remedy = shortage(context(request).settings) or "reload in a moment"
                detail = f"The database does not answer just now. Nothing is lost; {remedy}."
                return _page(request, status=503, title="Not available", detail=detail)

        return handle_as_page


def _login_address(request: Request) -> str:
    """/login, and back from there to what was asked for."""
    asked = request.url.path + (f"?{request.url.query}" if request.url.query else "")
    return f"/login?next={quote(asked)}"


def _page(request: Request, *, status: int, title: str, detail: str) -> Response:
    values = {"title": title, "detail": detail, "status": status}
    return renderer.page(context(request).settings.dashboards_dir, "problem.html", values, status=status)
