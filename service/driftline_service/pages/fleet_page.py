"""The page of workers and queues: who can work, at what, and what waits."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from driftline.contracts.words import AttemptState, JobKind, JobState
from driftline.contracts.worker_api import WorkerFacts
from fastapi import APIRouter
from fastapi.responses import Response
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from driftline_service.api.context import ContextDep, SessionDep
from driftline_service.api.workers import QUIET
from driftline_service.clock import now_utc
from driftline_service.database.tables import Attempt, Job, Worker
from driftline_service.pages import renderer
from driftline_service.pages.page_route import PageRoute

router = APIRouter(include_in_schema=False, route_class=PageRoute)

FORGOTTEN = timedelta(days=30)
"""A worker unheard of for so long is left out."""


@dataclass(frozen=True, slots=True)
class Task:
    """What a worker does just now."""

    run_id: UUID
    kind: JobKind
    arm: str
    lane: str | None
    phase: str | None
    done: int | None
    total: int | None
    since: datetime


@dataclass(frozen=True, slots=True)
class WorkerRow:
    """A worker; heard: within the time in which a working one is always heard."""

    facts: WorkerFacts
    last_seen: datetime
    heard: bool
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True)
class QueueRow:
    """A queue with work in it; oldest: since when its first job waits."""

    name: str
    waiting: int
    running: int
    oldest: datetime | None


@router.get("/workers")
def show_fleet(session: SessionDep, found: ContextDep) -> Response:
    """Workers and queues. Reloads itself, as long as it is looked at."""
    now = now_utc()
    values = {"workers": worker_rows(session, now), "queues": queue_rows(session)}
    return renderer.page(found.settings.dashboards_dir, "workers.html", values)


def worker_rows(session: Session, now: datetime) -> list[WorkerRow]:
    """Those heard of within a month, the busy ones first, then the latest."""
    tasks = _tasks(session)
    query = select(Worker).where(Worker.last_seen > now - FORGOTTEN).order_by(Worker.last_seen.desc(), Worker.name)
    rows = [
        WorkerRow(
            WorkerFacts.model_validate(row.facts), row.last_seen, now - row.last_seen < QUIET, tasks.get(row.name, ())
        )
        for row in session.scalars(query)
    ]
    return sorted(rows, key=lambda row: not row.tasks)


def queue_rows(session: Session) -> list[QueueRow]:
    """Queues that hold a queued or running job, by name."""
    queued = Job.state == JobState.QUEUED
    query = (
        select(
            Job.queue,
            func.count().filter(queued),
            func.count().filter(~queued),
            func.min(Job.created_at).filter(queued),
        )
        .where(Job.state.in_((JobState.QUEUED, JobState.RUNNING)))
        .group_by(Job.queue)
        .order_by(Job.queue)
    )
    return [QueueRow(*row) for row in session.execute(query)]


def _tasks(session: Session) -> dict[str, tuple[Task, ...]]:
    query = (
        select(Attempt, Job)
        .join(Job, Job.id == Attempt.job_id)
        .where(Attempt.state == AttemptState.RUNNING)
        .order_by(Attempt.created_at)
    )
    found: dict[str, tuple[Task, ...]] = {}
    for attempt, job in session.execute(query):
        task = Task(
            job.run_id, job.kind, job.arm, job.lane_name, attempt.phase, attempt.done, attempt.total, attempt.created_at
        )
        found[attempt.worker_name] = (*found.get(attempt.worker_name, ()), task)
    return found
