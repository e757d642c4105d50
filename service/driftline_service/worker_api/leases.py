"""Whose report this is: the attempt behind a token, locked, and what its worker is to do next."""

from datetime import datetime, timedelta
from hmac import compare_digest
from uuid import UUID

from driftline.contracts.words import AttemptState
from driftline.contracts.worker_api import Directive
from sqlalchemy.orm import Session

from driftline_service.api.problems import Problem
from driftline_service.database import attempt_queries, job_queries
from driftline_service.database.tables import Attempt, Job, Run
from driftline_service.dispatch.tokens import hash_of

CARRY_ON = Directive(action="continue")


def locked_attempt(session: Session, attempt_id: UUID, token: str) -> Attempt:
    """The attempt, job and attempt locked in that order until the transaction ends.

    Raises:
        Problem: 401 if there is no such attempt or the token is another's.
    """
    attempt = attempt_queries.attempt_by_id(session, attempt_id)
    if attempt is None or not compare_digest(attempt.token_hash, hash_of(token)):
        raise Problem(401, "wrong_token", "the attempt token is wrong; claim a job to get one")
    job_queries.lock_job(session, attempt.job_id)
    return attempt_queries.lock_attempt(session, attempt_id)


def not_running(session: Session, attempt: Attempt) -> Directive | None:
    """None while the attempt runs; a directive to stop if its job was cancelled.

    Raises:
        Problem: 410 if the attempt ended in another way: nothing more of it will be stored.
    """
    if attempt.state is AttemptState.RUNNING:
        return None
    if attempt.state is AttemptState.CANCELLED:
        job = session.get_one(Job, attempt.job_id)
        run = session.get_one(Run, job.run_id)
        return Directive(action="stop", reason=f"the run is {run.state.value}: {job.message}")
    raise Problem(410, "attempt_over", f"attempt {attempt.id} is {attempt.state.value}; its reports no longer count")


def extend(attempt: Attempt, lease: timedelta, now: datetime) -> None:
    """A report that came before the reconciler looked is in time, even if the lease was just over."""
    attempt.lease_until = now + lease
