"""GET /api/v1/lanes/{name}/history and …/change-points, and the read-only …/rescore of runs and imports."""

from typing import Annotated
from uuid import UUID

from driftline.contracts.base import Contract, Name
from driftline.contracts.change_points import LaneChangePoints
from driftline.contracts.imports import Address, LaneHistory, RescoreReport
from fastapi import APIRouter, Query
from pydantic import Field

from driftline_service.api import problems
from driftline_service.api.context import ContextDep, SessionDep
from driftline_service.imports.change_points import lane_change_points
from driftline_service.imports.history import lane_history
from driftline_service.imports.rescoring import rescore_import, rescore_run

router = APIRouter(prefix="/api/v1")

LARGEST_HISTORY = 1000
"""points; a chart with more is a smear"""


class HistoryFilter(Contract):
    """Which points to show."""

    repository: Address | None = Field(default=None, description="only this one's, exactly as submitted")
    limit: int = Field(default=200, ge=1, le=LARGEST_HISTORY, description="the newest so many")


@router.get("/lanes/{name}/history", tags=["lanes"], responses=problems.responses(404, 422))
def show_history(
    name: Name, session: SessionDep, found: ContextDep, wanted: Annotated[HistoryFilter, Query()]
) -> LaneHistory:
    """What was measured on a lane and what people reported of it, oldest first."""
    return lane_history(session, name, found.lanes, repository=wanted.repository, limit=wanted.limit)


@router.get("/lanes/{name}/change-points", tags=["lanes"], responses=problems.responses(404, 422))
def show_change_points(
    name: Name, session: SessionDep, found: ContextDep, repository: Address | None = None
) -> LaneChangePoints:
    """The commits from which the lane's score stays at another level, each with its confidence; spikes are none."""
    return lane_change_points(session, name, found.lanes, repository=repository)


@router.get("/runs/{run_id}/rescore", tags=["runs"], responses=problems.responses(404, 409, 422))
def show_rescored_run(run_id: UUID, session: SessionDep) -> RescoreReport:
    """The run's stored responses scored again, and every question whose score differs. Nothing is changed."""
    return rescore_run(session, run_id)


@router.get("/imports/{import_id}/rescore", tags=["imports"], responses=problems.responses(404, 422))
def show_rescored_import(import_id: UUID, session: SessionDep) -> RescoreReport:
    """The import's stored responses scored again, and every question whose score differs. Nothing is changed."""
    return rescore_import(session, import_id)
