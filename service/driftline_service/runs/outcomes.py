"""How an attempt ends and what that makes of its job. Callers hold the job's lock (job_queries.lock_job)."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from driftline.contracts.words import AttemptState, FailureKind, JobState
from sqlalchemy.orm import Session

from driftline_service.database import attempt_queries, job_queries, outbox_queries
from driftline_service.database.event_queries import record
from driftline_service.database.tables import Attempt, Job
from driftline_service.runs.elsewhere import LACKS, may_go_elsewhere
from driftline_service.runs.states import may_become_job

MAX_ATTEMPTS = 3
"""A third failure of the same kind is no accident any more."""

DRAINED = "worker_stopped"
"""A worker that is stopped gives its attempt back, to be taken up at once."""

AT_ONCE = frozenset({DRAINED, "worker_died"}) | LACKS
"""Ends after which waiting helps nobody: the worker is gone, and the one that says so is there, or
another worker is to try. One that died counts, since the job may be what kills it."""

NOT_COUNTED = frozenset({DRAINED, "disk_full"}) | LACKS
"""Ends that say nothing of the work: a job whose worker is stopped, has no disk left or lacks what it needs, waits until one
can do it. A child cannot claim them (driftline_worker.ending)."""

TIMED_OUT = frozenset({"child_silent", "child_too_slow", "cpu_limit"})
"""Failures that cost a worker the whole of a limit. What hangs twice hangs again: there is no third attempt, and no
second one for later jobs of an arm that hung twice before."""

MAX_TIME_OUTS = 2

FIRST_BACK_OFF = timedelta(seconds=5)
"""Long enough for a full disk or a restarting service to pass, doubled at each further attempt."""

LONGEST_BACK_OFF = timedelta(minutes=2)
"""A disk that was freed is noticed within this time."""


@dataclass(frozen=True, slots=True)
class AttemptFailure:
    """Why an attempt gave nothing."""

    kind: FailureKind
    reason: str
    message: str = ""


LEASE_EXPIRED = AttemptFailure(FailureKind.LOST, "lease_expired", "the worker was not heard of before its lease ended")


def adopt(session: Session, attempt: Attempt, now: datetime) -> bool:
    """The attempt succeeded and is the job's one and only. False if either was finished already."""
    if not attempt_queries.move_attempt(session, attempt.id, state=AttemptState.SUCCEEDED, now=now):
        return False
    values = {"adopted_attempt_id": attempt.id, "finished_at": now, "message": ""}
    expected = (JobState.RUNNING,)
    if not job_queries.move_job(session, attempt.job_id, expected=expected, state=JobState.SUCCEEDED, **values):
        raise RuntimeError(f"job {attempt.job_id} was not running although its attempt {attempt.id} was")
    job = session.get_one(Job, attempt.job_id)
    record(session, job.run_id, "job_succeeded", f"{title(job)}: succeeded", job_id=job.id)
    return True


def give_up(session: Session, attempt: Attempt, failure: AttemptFailure, now: datetime) -> bool:
    """The attempt failed: another one if its kind allows and it is worth while (`_is_last`), else the job failed.

    False if the attempt was finished already.
    """
    lost = failure.kind is FailureKind.LOST
    state = AttemptState.LOST if lost else AttemptState.FAILED
    told = {"failure_kind": failure.kind, "failure_reason": failure.reason, "message": failure.message}
    if not attempt_queries.move_attempt(session, attempt.id, state=state, now=now, **told):
        return False
    attempt_queries.delete_answers(session, attempt.id)
    job = session.get_one(Job, attempt.job_id)
    text = f"{title(job)}: attempt {attempt.number}: {failure.reason}: {failure.message}".rstrip(": ")
    record(session, job.run_id, "attempt_lost" if lost else "attempt_failed", text, job_id=job.id)
    if _is_last(session, job, failure, attempt.worker_name, now):
        _fail(session, job, failure, now)
    else:
        _queue_again(session, job, failure, now)
    return True


def title(job: Job) -> str:
    """What people call the job, e.g. "evaluate head on canary V1"."""
    words = f"{job.kind.value} {job.arm.value}"
    words = words if job.lane_name is None else f"{words} on {job.lane_name}"
    return f"{words}, pair {job.pair + 1}" if job.pair else words


def _is_last(session: Session, job: Job, failure: AttemptFailure, worker: str, now: datetime) -> bool:
    """Whether another attempt would only cost time."""
    if failure.reason in LACKS:
        return not may_go_elsewhere(session, job, worker, now)
    if not failure.kind.retried:
        return True
    if failure.reason in NOT_COUNTED:
        return False
    reasons = attempt_queries.failure_reasons(session, job.id)
    timed_out = sum(reason in TIMED_OUT for reason in reasons)
    if failure.reason in TIMED_OUT and (timed_out >= MAX_TIME_OUTS or _arm_hung_before(session, job)):
        return True
    return _counted(reasons) >= MAX_ATTEMPTS


def _arm_hung_before(session: Session, job: Job) -> bool:
    jobs = job_queries.jobs_of(session, job.run_id)
    return any(one.arm is job.arm and one.failure_reason in TIMED_OUT for one in jobs)


def _counted(reasons: Iterable[str | None]) -> int:
    return sum(reason not in NOT_COUNTED for reason in reasons)


def _queue_again(session: Session, job: Job, failure: AttemptFailure, now: datetime) -> None:
    not_before = now
    if failure.reason not in AT_ONCE:
        failures = sum(reason not in AT_ONCE for reason in attempt_queries.failure_reasons(session, job.id))
        not_before += min(FIRST_BACK_OFF * 2 ** (failures - 1), LONGEST_BACK_OFF)
    values = {"not_before": not_before, "message": f"{failure.reason}: {failure.message}".rstrip(": ")}
    if job_queries.move_job(session, job.id, expected=(JobState.RUNNING,), state=JobState.QUEUED, **values):
        outbox_queries.enqueue(session, job.id, not_before)


def _fail(session: Session, job: Job, failure: AttemptFailure, now: datetime) -> None:
    values = {
        "failure_kind": failure.kind, "failure_reason": failure.reason, "message": failure.message, "finished_at": now,
    }  # fmt: skip
    expected = may_become_job(JobState.FAILED)
    if job_queries.move_job(session, job.id, expected=expected, state=JobState.FAILED, **values):
        record(session, job.run_id, "job_failed", f"{title(job)}: {failure.reason}", job_id=job.id)
