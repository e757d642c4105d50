"""GET /api/v1/workers: who can work, as they last described themselves."""

from datetime import UTC, datetime, timedelta

from driftline.contracts.base import Contract
from driftline.contracts.worker_api import WorkerFacts
from fastapi import APIRouter
from pydantic import Field
from sqlalchemy import select

from driftline_service.api.context import SessionDep
from driftline_service.database.tables import Worker

router = APIRouter(prefix="/api/v1/workers", tags=["workers"])

QUIET = timedelta(minutes=10)
"""An idle worker says nothing; one that was heard within this time is shown as recent."""


class WorkerEntry(Contract):
    worker: WorkerFacts
    last_seen: datetime
    recent: bool = Field(description="heard of within ten minutes; an idle worker says nothing")


class WorkerList(Contract):
    workers: list[WorkerEntry]


@router.get("")
def list_workers(session: SessionDep) -> WorkerList:
    """All workers that ever claimed a job, the latest first."""
    now = datetime.now(UTC)
    rows = session.scalars(select(Worker).order_by(Worker.last_seen.desc(), Worker.name)).all()
    return WorkerList(
        workers=[
            WorkerEntry(
                worker=WorkerFacts.model_validate(row.facts),
                last_seen=row.last_seen,
                recent=now - row.last_seen < QUIET,
            )
            for row in rows
        ]
    )
