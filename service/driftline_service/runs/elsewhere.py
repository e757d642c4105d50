"""Jobs that a worker could not do for want of an environment, a model or data go to another, which may have them.

A queue is of a GPU type. Which environments lie on its workers, the service does not know, so a worker tells by failing:
its message goes round again, and whoever lacked something leaves it alone, until all that were heard of lately have tried.
"""

from datetime import datetime, timedelta

from driftline.contracts.words import AttemptState
from driftline.contracts.worker_api import WorkerFacts, gpu_type_of
from sqlalchemy import Select, select
from sqlalchemy.orm import Session

from driftline_service.database import outbox_queries, worker_queries
from driftline_service.database.tables import Attempt, Job

LACKS = frozenset({"environment_missing", "model_missing", "dataset_missing"})
"""What a worker has not, and another of its queue may have. Words of workers alone: no child can say them."""

WAITED_FOR = timedelta(hours=1)
"""So long a job waits for workers that have not tried; then any may take it, and one that lacks the same again ends it."""

ASKED_AGAIN = timedelta(seconds=15)
"""After which the message of a job that was left alone goes round again."""


def may_go_elsewhere(session: Session, job: Job, worker: str, now: datetime) -> bool:
    """Whether a job whose attempt by this worker just ended in one of LACKS is to be queued again: there is a worker that
    did not try, and this one had not failed so before."""
    tried = list(session.scalars(_lacking(job)))
    return tried.count(worker) <= 1 and _untried(session, job, set(tried), now)


def left_to_another(session: Session, job: Job, facts: WorkerFacts, now: datetime) -> bool:
    """Whether this worker should leave the job alone, since it lacks something for it and another may not. The message goes
    round again, in the caller's transaction."""
    tried = set(session.scalars(_lacking(job)))
    if facts.name not in tried or _waited(session, job, now) or not _untried(session, job, tried, now):
        return False
    outbox_queries.enqueue(session, job.id, now + ASKED_AGAIN)
    return True


def _lacking(job: Job) -> Select[str]:
    """Who failed this job for want of something, once an attempt."""
    query = select(Attempt.worker_name).where(Attempt.job_id == job.id, Attempt.state == AttemptState.FAILED)
    return query.where(Attempt.failure_reason.in_(LACKS))


def _untried(session: Session, job: Job, tried: set[str], now: datetime) -> bool:
    """Whether a worker was heard of that serves this queue and is none of these."""
    return worker_queries.is_another(session, gpu_type_of(job.queue), now, than=tried)


def _waited(session: Session, job: Job, now: datetime) -> bool:
    first = _lacking(job).with_only_columns(Attempt.finished_at).order_by(Attempt.number).limit(1)
    since = session.execute(first).scalar_one_or_none()
    return since is not None and since + WAITED_FOR < now
