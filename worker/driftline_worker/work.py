"""One message becomes one attempt: claim, run, report, finish. Everything that can go wrong ends in one of these."""

import threading
from dataclasses import dataclass
from uuid import UUID

import structlog
from driftline.contracts.words import FailureKind
from driftline.contracts.worker_api import Claim, Finish, WorkerFacts
from driftline.git.credential import credential_for, lent

from driftline_worker.bench import Bench
from driftline_worker.client import Gone, Refused, ServiceClient, Unreachable
from driftline_worker.ending import Abandoned, Ending, Failed, Succeeded, clipped
from driftline_worker.heartbeat import Heartbeat
from driftline_worker.held_attempts import HeldAttempts
from driftline_worker.reporting import Reporter
from driftline_worker.running_attempts import RunningAttempts
from driftline_worker.stop_request import StopRequest

_log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger("driftline.worker")


@dataclass(frozen=True, slots=True)
class Desk:
    """What every attempt of this worker shares."""

    bench: Bench
    client: ServiceClient
    facts: WorkerFacts
    running: RunningAttempts
    held: HeldAttempts


def work(desk: Desk, job_id: UUID, claim_token: str) -> None:
    """Serve one message. A job that is not to be had, or a service that is away, only ends the message: the service,
    which knows better, sends another."""
    try:
        claim = desk.client.claim(job_id, claim_token, desk.facts)
    except (Gone, Refused, Unreachable) as error:
        _log.info("job not claimed", job_id=str(job_id), why=f"{type(error).__name__}: {error}")
        return
    with structlog.contextvars.bound_contextvars(
        job_id=str(job_id), run_id=str(claim.spec.run_id), attempt_id=str(claim.attempt_id)
    ):
        _attempt(desk, claim)


def _attempt(desk: Desk, claim: Claim) -> None:
    _log.info("attempt begins", kind=claim.spec.kind, arm=claim.spec.arm)
    stop = StopRequest()
    attempt, token = claim.attempt_id, claim.attempt_token
    with (
        desk.running.listed(stop),
        desk.held.holding(attempt, token),
        Heartbeat(lambda: desk.client.heartbeat(attempt, token), stop, lease_seconds=claim.lease_seconds),
    ):
        reporter = Reporter(lambda batch: desk.client.lines(attempt, token, batch), stop)
        try:
            ending = _ending(desk.bench, claim, reporter, stop)
        finally:
            reporter.close()
        ending = _after_last_batch(ending, stop)
        if not isinstance(ending, Abandoned):
            _finish(desk, claim, ending, reporter.batches)
    _log.info("attempt ended", ending=type(ending).__name__, why=getattr(ending, "reason", getattr(ending, "why", "")))


def _ending(bench: Bench, claim: Claim, reporter: Reporter, stop: StopRequest) -> Ending:
    """The root handler: a bug of the worker fails the attempt, and the next message finds the worker well."""
    token, url = claim.source_token, claim.spec.source.url
    try:
        with lent(None if token is None else credential_for(url, token)):
            return bench.run(claim.spec, reporter, stop)
    except Exception as error:
        _log.exception("attempt broke")
        return Failed(FailureKind.TRANSIENT, "worker_error", clipped(f"{type(error).__name__}: {error}"))


def _after_last_batch(ending: Ending, stop: StopRequest) -> Ending:
    """The last batches may have met what the child's watch did not see any more."""
    match stop.why:
        case "lease_gone" | "stopped":
            return Abandoned(stop.message or stop.why)
        case "report_refused":
            return Failed(FailureKind.PERMANENT, "report_refused", clipped(stop.message))
        case _:
            return ending


def _finish(desk: Desk, claim: Claim, ending: Succeeded | Failed, batches: int) -> None:
    if isinstance(ending, Succeeded):
        finish = Finish(
            outcome="succeeded", batches=batches, dropped_lines=ending.dropped, child_seconds=ending.seconds
        )
    else:
        finish = Finish(
            outcome="failed", batches=batches, failure_kind=ending.kind, reason=ending.reason, message=ending.message,
            dropped_lines=ending.dropped, child_seconds=ending.seconds,
        )  # fmt: skip
    try:
        desk.client.finish(claim.attempt_id, claim.attempt_token, finish)
    except (Gone, Unreachable) as error:
        _log.info("finish not taken", why=str(error))
    except Refused as error:
        _log.error("finish refused", why=str(error))


def drained(desk: Desk, hurry: threading.Event) -> None:
    """The worker is being stopped: give up what runs, and wait for no service."""
    desk.running.stop_all()
    hurry.set()
