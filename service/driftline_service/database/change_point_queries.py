"""Named queries on what is known and decided of change points."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from driftline.contracts.words import RunState
from sqlalchemy import select, tuple_
from sqlalchemy.orm import Session

from driftline_service.database.tables import ChangePointDecision, Repository, Run


@dataclass(frozen=True, slots=True)
class Compared:
    """A finished run of one commit against another: its lanes as judged, each a LaneView's JSON."""

    run_id: UUID
    repository: str
    base: str
    head: str
    at: datetime
    lanes: list[dict[str, Any]]


def decisions_on(session: Session, lane: str) -> Sequence[ChangePointDecision]:
    """All decisions on a lane's points, oldest first."""
    query = select(ChangePointDecision).where(ChangePointDecision.lane_name == lane)
    return session.scalars(query.order_by(ChangePointDecision.id)).all()


def compared(session: Session, pairs: Iterable[tuple[str, str]]) -> list[Compared]:
    """Finished runs of these (base, head), oldest first."""
    query = (
        select(Run.id, Repository.url, Run.base_sha, Run.head_sha, Run.finished_at, Run.view["lanes"])
        .join(Repository, Repository.id == Run.repository_id)
        .where(Run.state == RunState.DONE, tuple_(Run.base_sha, Run.head_sha).in_(list(pairs)))
        .order_by(Run.finished_at, Run.id)
    )
    return [Compared(*row) for row in session.execute(query)]
