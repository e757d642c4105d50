"""Which queued jobs need a message now: those never sent, and those whose message seems lost."""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from uuid import UUID

from driftline.contracts.words import JobState
from sqlalchemy.orm import Session

from driftline_service.database import outbox_queries, worker_queries
from driftline_service.database.event_queries import record
from driftline_service.database.job_queries import Sendings
from driftline_service.database.tables import Job
from driftline_service.runs.outcomes import title

FIRST_WAIT = timedelta(seconds=30)
"""A free worker claims within a second. A needless message costs one 409; a lost one costs a run its time."""

LONGEST_WAIT = timedelta(minutes=10)
"""Messages may wait behind an hour of other work; doubling up to here keeps such a queue short."""


def dispatch(session: Session, jobs: Iterable[Job], sendings: Mapping[UUID, Sendings], now: datetime) -> None:
    """Give each queued job among these a message, if it needs one, in the caller's transaction; `sendings` knows them all."""
    for job in jobs:
        if job.state is not JobState.QUEUED or (job.not_before is not None and job.not_before > now):
            continue
        told = sendings[job.id]
        if not needs_message(told, now):
            continue
        outbox_queries.enqueue(session, job.id, now)
        if told.sent > told.attempts and not worker_queries.is_busy(session, job.queue):
            record(session, job.run_id, "job_sent_again", f"{title(job)}: no worker took it so far", job_id=job.id)


def needs_message(sendings: Sendings, now: datetime) -> bool:
    """No message waits to be sent, and the last one is unanswered for longer than messages usually are."""
    if sendings.waiting:
        return False
    unanswered = sendings.sent - sendings.attempts
    if sendings.last_sent_at is None or unanswered <= 0:
        return True
    wait = min(FIRST_WAIT * (1 << min(unanswered - 1, 10)), LONGEST_WAIT)
    return sendings.last_sent_at + wait <= now
