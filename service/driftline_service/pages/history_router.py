"""The addresses of lanes and imports as pages. What they show is gathered elsewhere."""

from typing import Annotated
from uuid import UUID

from driftline.contracts.imports import LaneHistory
from fastapi import APIRouter, Depends
from fastapi.responses import Response

from driftline_service.api.context import ContextDep, SessionDep
from driftline_service.database import import_queries
from driftline_service.imports.change_points import lane_change_points
from driftline_service.imports.history import lane_history
from driftline_service.imports.views import import_detail, import_views
from driftline_service.intake.refusal import Refusal
from driftline_service.pages import renderer
from driftline_service.pages.history_plot import history_plot, plotted_points
from driftline_service.pages.lane_rows import lane_rows
from driftline_service.pages.page_route import NotFound, PageRoute

router = APIRouter(include_in_schema=False, route_class=PageRoute)

MOST_POINTS = 200
MOST_IMPORTS = 100


@router.get("/lanes")
def show_lanes(session: SessionDep, found: ContextDep) -> Response:
    """All lanes, each with the way to its history."""
    return renderer.page(found.settings.dashboards_dir, "lanes.html", {"lanes": lane_rows(session, found.lanes)})


def _history(name: str, session: SessionDep, found: ContextDep, repository: str = "") -> LaneHistory:
    try:
        return lane_history(session, name, found.lanes, repository=repository or None, limit=MOST_POINTS)
    except Refusal as refused:
        raise NotFound(f"{refused}.") from refused


HistoryDep = Annotated[LaneHistory, Depends(_history)]


@router.get("/lanes/{name}")
def show_lane(name: str, history: HistoryDep, session: SessionDep, found: ContextDep, repository: str = "") -> Response:
    """One lane: its chart, its change points and its points, newest first."""
    values = {
        "history": history, "lane": found.lanes.named(name), "repository": repository,
        "repositories": sorted({point.repository for point in history.points if point.repository}),
        "plotted": plotted_points(history.points),
        "changes": lane_change_points(session, name, found.lanes, repository=repository or None),
    }  # fmt: skip
    return renderer.page(found.settings.dashboards_dir, "lane.html", values)


@router.get("/lanes/{name}/history.svg")
def show_history_plot(history: HistoryDep) -> Response:
    """The chart."""
    points = plotted_points(history.points)
    if not points:
        raise NotFound(f"Lane {history.lane} has no exact_match to draw yet.")
    return renderer.plot(history_plot(points))


@router.get("/imports")
def show_imports(session: SessionDep, found: ContextDep) -> Response:
    """The newest imports."""
    rows = session.scalars(import_queries.list_imports().limit(MOST_IMPORTS)).all()
    values = {"imports": import_views(session, rows, found.settings.public_url)}
    return renderer.page(found.settings.dashboards_dir, "imports.html", values)


@router.get("/imports/{import_id}")
def show_import(import_id: str, session: SessionDep, found: ContextDep) -> Response:
    """One import: who reported it, what its files state, what became of it."""
    try:
        detail = import_detail(session, UUID(import_id), found.settings.public_url)
    except (ValueError, Refusal) as error:
        raise NotFound(f"There is no import {import_id}. Its address may be cut off.") from error
    return renderer.page(found.settings.dashboards_dir, "import.html", {"detail": detail, "view": detail})
