"""Logging in to read a private service, and what the login page itself needs. Never asked of a public one.

The cookie is the token: HttpOnly, for this site alone, and good for reading only, so no page elsewhere gains by it.
A revoked token logs its bearer out at once.
"""

from urllib.parse import parse_qs, urlsplit

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from driftline_service.api.context import Context, ContextDep, caller
from driftline_service.api.problems import Problem, note_refusal
from driftline_service.pages import renderer
from driftline_service.pages.page_route import NotFound, PageRoute

router = APIRouter(include_in_schema=False, route_class=PageRoute)

ASSETS = {"style.css": "text/css", "live.js": "text/javascript", "icon.svg": "image/svg+xml"}
"""Closed: nothing else in that folder is served, whatever the address says."""

COOKIE = "driftline_token"
HOURS = 12
LONGEST_FORM = 4096


@router.get("/static/{name}")
def show_asset(name: str, found: ContextDep) -> Response:
    """The stylesheet and the script."""
    if name not in ASSETS:
        raise NotFound(f"There is no file {name}.")
    return renderer.asset(found.settings.dashboards_dir / "static" / name, ASSETS[name])


@router.get("/login")
def show_login(found: ContextDep, next: str = "/") -> Response:  # noqa: A002 - the address's own word
    """The form."""
    return _form(found, _inside(next), problem="")


@router.post("/login")
async def log_in(request: Request, found: ContextDep) -> Response:
    """Check the token and remember it in a cookie."""
    body = await request.body()
    fields = parse_qs(body.decode("utf-8", "replace")) if len(body) <= LONGEST_FORM else {}
    token, target = fields.get("token", [""])[0].strip(), _inside(fields.get("next", ["/"])[0])
    try:
        await run_in_threadpool(caller, found, token)
    except Problem as error:
        note_refusal(request.scope, status=error.status, reason=error.reason)
        return _form(found, target, problem=error.detail, status=403)
    answer = RedirectResponse(target, status_code=303)
    answer.set_cookie(
        COOKIE, token, max_age=HOURS * 3600, httponly=True, samesite="strict", secure=_is_https(found),
    )  # fmt: skip
    return answer


@router.post("/logout")
def log_out() -> Response:
    """Forget the token."""
    answer = RedirectResponse("/login", status_code=303)
    answer.delete_cookie(COOKIE, httponly=True, samesite="strict")
    return answer


def _form(found: Context, target: str, *, problem: str, status: int = 200) -> Response:
    values = {"next": target, "problem": problem, "private": found.settings.private}
    return renderer.page(found.settings.dashboards_dir, "login.html", values, status=status, forms=True)


def _inside(target: str) -> str:
    """A path of this site; anything that leads elsewhere becomes the list of runs."""
    split = urlsplit(target)
    local = not split.scheme and not split.netloc and target.startswith("/") and not target.startswith(("//", "/\\"))
    return target if local and target.isprintable() else "/"


def _is_https(found: Context) -> bool:
    return found.settings.public_url.startswith("https://")
