"""A worker takes a job: a claim token, once, for an attempt token that lives as long as its lease."""

from datetime import datetime, timedelta
from uuid import UUID

from driftline.contracts.words import JobKind, JobState
from driftline.contracts.worker_api import Claim, WorkerFacts
from sqlalchemy.orm import Session

from driftline_service.api.problems import Problem
from driftline_service.database import attempt_queries, job_queries, outbox_queries, run_queries, worker_queries
from driftline_service.database.event_queries import record
from driftline_service.database.tables import Attempt, Job, Run
from driftline_service.dispatch import tokens
from driftline_service.runs import elsewhere, fresh_pairs, planner
from driftline_service.runs.outcomes import title
from driftline_service.worker_api.specs import spec_of


def claim(
    session: Session, job_id: UUID, token: str, facts: WorkerFacts, *, lease: timedelta, now: datetime
) -> Claim | None:
    """Make the job's next attempt in the caller's transaction; None if another worker should have it.

    Raises:
        Problem: 401 if the token does not fit; 409 if the job is not to be had (its message came twice, say).
    """
    if not outbox_queries.use_claim_token(session, tokens.hash_of(token), job_id, now):
        raise Problem(401, "wrong_token", "the claim token is unknown, used or expired; wait for the next message")
    job = job_queries.lock_job(session, job_id)
    run = None if job is None else session.get_one(Run, job.run_id)
    if job is None or run is None or not _to_be_had(job, run, now):
        raise Problem(409, "not_available", f"job {job_id} is not to be had: taken, finished, or not yet due")
    worker_queries.remember_worker(
        session, facts, now
    )  # after the job's lock, as reports do: else they block each other
    if any(rule.left_to_another(session, job, facts, now) for rule in (fresh_pairs, elsewhere)):
        return None
    attempt, secret = _new_attempt(session, job, facts, lease=lease, now=now)
    job_queries.move_job(session, job.id, expected=(JobState.QUEUED,), state=JobState.RUNNING,
                         started_at=job.started_at or now, message="")  # fmt: skip
    record(session, run.id, "job_claimed", f"{title(job)}: attempt {attempt.number} on {facts.name}", job_id=job.id)
    lane = run_queries.lane_of(session, run.id, job.lane_name or "") if job.kind is JobKind.EVALUATE else None
    return Claim(
        attempt_id=attempt.id, attempt_token=secret, lease_seconds=int(lease.total_seconds()),
        spec=spec_of(job, run, lane),
    )  # fmt: skip


def _to_be_had(job: Job, run: Run, now: datetime) -> bool:
    due = job.not_before is None or job.not_before <= now
    return job.state is JobState.QUEUED and job.kind in planner.PHASES.get(run.state, ()) and due


def _new_attempt(
    session: Session, job: Job, facts: WorkerFacts, *, lease: timedelta, now: datetime
) -> tuple[Attempt, str]:
    token = tokens.mint()
    attempt = Attempt(
        job_id=job.id, number=attempt_queries.next_number(session, job.id), worker_name=facts.name,
        worker=facts.model_dump(mode="json"), environment_id=facts.environment_id, token_hash=token.hash,
        lease_until=now + lease,
    )  # fmt: skip
    session.add(attempt)
    session.flush()  # its id
    return attempt, token.secret
