"""Named queries on workers."""

from collections.abc import Collection
from datetime import datetime, timedelta

from driftline.contracts.words import AttemptState
from driftline.contracts.worker_api import WorkerFacts
from sqlalchemy import select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from driftline_service.database.tables import Attempt, Job, Worker

SEEN = timedelta(days=1)
"""A worker that was not heard of for so long is gone. One without work says nothing, so this is generous."""


def remember_worker(session: Session, facts: WorkerFacts, now: datetime) -> None:
    values = {"facts": facts.model_dump(mode="json"), "last_seen": now}
    statement = insert(Worker).values(name=facts.name, **values)
    session.execute(statement.on_conflict_do_update(index_elements=["name"], set_=values))


def saw_worker(session: Session, name: str, now: datetime) -> None:
    session.execute(update(Worker).where(Worker.name == name).values(last_seen=now))


def is_busy(session: Session, queue: str) -> bool:
    """Whether a worker is at work on any job of this queue: then what waits there waits its turn."""
    query = select(Attempt.id).join(Job, Job.id == Attempt.job_id)
    query = query.where(Attempt.state == AttemptState.RUNNING, Job.queue == queue).limit(1)
    return session.execute(query).first() is not None


def is_another(
    session: Session, gpu_type: str | None, now: datetime, *, than: Collection[str], environment_id: str | None = None
) -> bool:
    """Whether a worker that is none of these could serve such a lane; `gpu_type` as in `latest_environment`.

    `environment_id`: and has this environment.
    """
    query = select(Worker.name).where(Worker.name.not_in(than), Worker.last_seen >= now - SEEN)
    if environment_id is not None:
        query = query.where(Worker.facts["environment_id"].astext == environment_id)
    if gpu_type is not None:
        query = query.where(Worker.facts["gpu_type"].astext == gpu_type)
    return session.execute(query.limit(1)).first() is not None


def latest_environment(session: Session, gpu_type: str | None) -> str | None:
    """The environment of the worker seen last that would serve such a lane; None if none was ever seen.

    Work without a GPU goes to any worker, so any will do for `gpu_type` None.
    """
    query = select(Worker.facts["environment_id"].astext).order_by(Worker.last_seen.desc()).limit(1)
    if gpu_type is not None:
        query = query.where(Worker.facts["gpu_type"].astext == gpu_type)
    return session.execute(query).scalar_one_or_none()
