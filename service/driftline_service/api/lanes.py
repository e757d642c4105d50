"""GET /api/v1/lanes: what this service can measure."""

from driftline.contracts.base import Contract
from driftline.contracts.lane import Lane
from fastapi import APIRouter

from driftline_service.api.context import ContextDep

router = APIRouter(prefix="/api/v1/lanes", tags=["lanes"])


class LaneEntry(Contract):
    """A lane, and whether runs that name none take it."""

    lane: Lane
    default: bool


class LaneList(Contract):
    lanes: list[LaneEntry]


@router.get("")
def list_lanes(found: ContextDep) -> LaneList:
    """The configured lanes, in the configuration's order."""
    return LaneList(
        lanes=[LaneEntry(lane=lane, default=lane.name in found.lanes.default_names) for lane in found.lanes.all]
    )
