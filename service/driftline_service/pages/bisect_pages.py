"""The pages of searches for the first bad commit."""

from uuid import UUID

from fastapi import APIRouter
from fastapi.responses import Response

from driftline_service.api.context import ContextDep, SessionDep
from driftline_service.bisects.views import bisect_view, view_of
from driftline_service.database import bisect_queries
from driftline_service.intake.refusal import Refusal
from driftline_service.pages import renderer
from driftline_service.pages.page_route import NotFound, PageRoute

router = APIRouter(include_in_schema=False, route_class=PageRoute)

MOST_BISECTS = 50


@router.get("/bisects")
def show_bisects(session: SessionDep, found: ContextDep) -> Response:
    """The newest searches."""
    rows = bisect_queries.newest(session, before=None, limit=MOST_BISECTS)
    views = [view_of(session, row, found.settings.public_url) for row in rows]
    return renderer.page(found.settings.dashboards_dir, "bisects.html", {"bisects": views})


@router.get("/bisects/{bisect_id}")
def show_bisect(bisect_id: str, session: SessionDep, found: ContextDep) -> Response:
    """One search: what was found, or how far it is, step by step."""
    try:
        view = bisect_view(session, UUID(bisect_id), found.settings.public_url)
    except (ValueError, Refusal) as error:
        raise NotFound(f"There is no bisect {bisect_id}. Its address may be cut off.") from error
    return renderer.page(found.settings.dashboards_dir, "bisect.html", {"view": view})
