"""The list of lanes: those that are configured and those that only have a history, with how much there is of each."""

from dataclasses import dataclass

from driftline.contracts.lane import Lane
from sqlalchemy.orm import Session

from driftline_service.database import history_queries
from driftline_service.lanes import Lanes


@dataclass(frozen=True, slots=True)
class LaneRow:
    """One lane; `lane` is None if it is not configured any more."""

    name: str
    lane: Lane | None
    default: bool
    measured: int
    reported: int


def lane_rows(session: Session, lanes: Lanes) -> list[LaneRow]:
    """Configured lanes in the configuration's order, then the others by name."""
    counts = history_queries.history_counts(session)
    others = sorted(counts.keys() - set(lanes.names))
    return [
        LaneRow(name, lanes.named(name), name in lanes.default_names, *counts.get(name, (0, 0)))
        for name in (*lanes.names, *others)
    ]
