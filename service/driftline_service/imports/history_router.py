"""GET /api/v1/lanes/{name}/history and …/change-points, and the read-only …/rescore of runs and imports."""

from typing import Annotated
from uuid import UUID

from driftline.contracts.base import Contract, Name
from driftline.contracts.change_points import Decision, LaneChangePoints
from driftline.contracts.change_state import ChangeState
from driftline.contracts.imports import Address, LaneHistory, RescoreReport
from fastapi import APIRouter, Query
from pydantic import Field, StringConstraints

from driftline_service.api import problems
from driftline_service.api.context import ContextDep, SessionDep, SubmitterDep
from driftline_service.clock import now_utc
from driftline_service.imports.change_points import lane_change_points
from driftline_service.imports.change_states import decide
from driftline_service.imports.history import lane_history
from driftline_service.imports.rescoring import rescore_import, rescore_run
from driftline_service.intake.request import OneLine

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


class ChangePointDecided(Contract):
    """What is decided of the change points at a commit."""

    commit: str = Field(pattern=r"^[0-9a-f]{4,40}$", description="the first commit of the new level, or its beginning")
    state: ChangeState = Field(description="confirmed, acknowledged, ignored or fixed")
    why: Annotated[str, StringConstraints(min_length=1, max_length=500), OneLine]
    repository: Address | None = Field(default=None, description="if several have a point there")
    filter: str | None = Field(default=None, description="only this filter's point")


@router.post("/lanes/{name}/change-points", tags=["lanes"], responses=problems.responses(401, 403, 404, 409, 422))
def decide_change_point(who: SubmitterDep, name: Name, body: ChangePointDecided, found: ContextDep) -> LaneChangePoints:
    """Say what becomes of a change point. The decision is kept, with who and why; the latest counts."""
    decision = Decision(state=body.state, who=who.name, why=body.why, at=now_utc())
    with found.sessions.begin() as session:
        points = lane_change_points(session, name, found.lanes, repository=body.repository)
        decide(session, points, body.commit, decision, filter_name=body.filter)
    with found.sessions() as session:
        return lane_change_points(session, name, found.lanes, repository=body.repository)


@router.get("/runs/{run_id}/rescore", tags=["runs"], responses=problems.responses(404, 409, 422))
def show_rescored_run(run_id: UUID, session: SessionDep) -> RescoreReport:
    """The run's stored responses scored again, and every question whose score differs. Nothing is changed."""
    return rescore_run(session, run_id)


@router.get("/imports/{import_id}/rescore", tags=["imports"], responses=problems.responses(404, 422))
def show_rescored_import(import_id: UUID, session: SessionDep) -> RescoreReport:
    """The import's stored responses scored again, and every question whose score differs. Nothing is changed."""
    return rescore_import(session, import_id)
