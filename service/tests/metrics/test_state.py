"""The queue's figures on a real PostgreSQL, each against rows put there for it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from driftline.contracts.words import AttemptState, FailureKind, JobState
from driftline_service.database.engine import Sessions
from driftline_service.database.github_queries import MOST_TRIES
from driftline_service.database.tables import Attempt, GithubDelivery, Job, OutboxMessage, Run, Worker
from driftline_service.metrics.state import QueueState
from driftline_service.runs.leadership import Leadership
from driftline_service.runs.submission import submit
from prometheus_client import CollectorRegistry
from sqlalchemy import Engine, delete, select, update

NOW = datetime(2026, 12, 2, 12, tzinfo=UTC)


@pytest.fixture
def figures(core_sessions: Sessions) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(QueueState(core_sessions, lambda: NOW))
    return registry


def _value(figures: CollectorRegistry, name: str, **labels: str) -> float | None:
    return figures.get_sample_value(f"driftline_{name}", labels)


def test_an_empty_service_reports_zeros_and_no_reconciler(figures: CollectorRegistry) -> None:
    names = ("outbox_due", "leases_overdue", "reconciler_lag_seconds", "reconciler_present")
    assert [_value(figures, name) for name in names] == [0, 0, 0, 0]
    assert _value(figures, "workers", heard="recently") == 0


def test_a_reconciler_that_leads_is_present(figures: CollectorRegistry, core_engine: Engine) -> None:
    leader = Leadership(core_engine)
    assert leader.held()
    assert _value(figures, "reconciler_present") == 1
    leader.release()
    assert _value(figures, "reconciler_present") == 0


def test_jobs_that_wait_are_counted_with_the_age_of_the_oldest(
    figures: CollectorRegistry, core_sessions: Sessions, world: Any
) -> None:
    with core_sessions.begin() as session:
        submit(session, world.new_run())
        session.execute(update(Job).values(created_at=NOW - timedelta(seconds=500), queue="cpu"))
        session.execute(update(Job).where(Job.kind == "evaluate").values(queue="gpu-H100"))
        session.execute(delete(OutboxMessage))
        job = session.scalars(select(Job).where(Job.kind == "build")).first()
        assert job is not None
        for age in (90, 60):  # sent twice: nobody took the first
            session.add(OutboxMessage(job_id=job.id, not_before=NOW - timedelta(seconds=age), sent_at=NOW))
        kinds = session.scalars(select(Job.kind).where(Job.state == JobState.QUEUED, Job.queue == "cpu")).all()
    waiting = {kind: kinds.count(kind) for kind in kinds}
    assert waiting
    assert {k: _value(figures, "jobs", queue="cpu", kind=k, state="queued") for k in waiting} == waiting
    assert _value(figures, "oldest_queued_job_seconds", queue="cpu") == 90
    assert _value(figures, "oldest_queued_job_seconds", queue="gpu-H100") is None  # its run still builds
    with core_sessions.begin() as session:  # it failed meanwhile, and waits anew
        session.execute(update(Job).where(Job.id == job.id).values(not_before=NOW - timedelta(seconds=60)))
    assert _value(figures, "oldest_queued_job_seconds", queue="cpu") == 60
    assert _value(figures, "runs", state="queued") == 1


def test_verdicts_are_counted_as_runs_are_judged(
    figures: CollectorRegistry, core_sessions: Sessions, world: Any
) -> None:
    seen = [("regressed", "failed"), ("regressed", "passed"), ("regressed", "failed"), (None, "not_judged")]
    with core_sessions.begin() as session:
        submit(session, world.new_run())  # one that is still under way
        runs = [submit(session, world.new_run()) for _ in seen]
    for run_id, (verdict, result) in zip(runs, seen, strict=True):
        view = {"verdict": verdict, "kernel_check": {"result": result}}
        with core_sessions.begin() as session:
            session.execute(update(Run).where(Run.id == run_id).values(state="done", view=view, finished_at=NOW))
    with core_sessions.begin() as session:  # a later word about a run that is done is no second verdict
        session.execute(update(Run).where(Run.id == runs[0]).values(state="done", name="renamed"))
    found = {
        (verdict, result): _value(figures, "run_verdicts_total", verdict=verdict, kernel_check=result)
        for verdict, result in (("regressed", "failed"), ("regressed", "passed"), ("none", "not_judged"))
    }
    assert found == {("regressed", "failed"): 2, ("regressed", "passed"): 1, ("none", "not_judged"): 1}
    assert _value(figures, "runs", state="done") == 4


def test_the_lag_is_the_age_of_the_oldest_thing_not_done(
    figures: CollectorRegistry, core_sessions: Sessions, world: Any
) -> None:
    with core_sessions.begin() as session:
        submit(session, world.new_run())
        job = session.scalars(select(Job)).first()
        assert job is not None
        session.execute(delete(OutboxMessage))
        session.add(OutboxMessage(job_id=job.id, not_before=NOW - timedelta(seconds=5)))
    assert (_value(figures, "outbox_due"), _value(figures, "reconciler_lag_seconds")) == (1, 5)
    with core_sessions.begin() as session:
        session.add(_attempt(job.id, number=1, lease_until=NOW - timedelta(seconds=40)))
    assert (_value(figures, "leases_overdue"), _value(figures, "reconciler_lag_seconds")) == (1, 40)


def test_failed_attempts_and_their_seconds_are_counted_by_class(
    figures: CollectorRegistry, core_sessions: Sessions, world: Any
) -> None:
    with core_sessions.begin() as session:
        submit(session, world.new_run())
        job = session.scalars(select(Job).where(Job.kind == "build")).first()
        assert job is not None
        for number, failure in enumerate((FailureKind.LOST, FailureKind.TRANSIENT, FailureKind.LOST), start=1):
            attempt = _attempt(job.id, number=number, lease_until=NOW)
            attempt.state, attempt.finished_at, attempt.child_seconds = AttemptState.FAILED, NOW, 2.5
            attempt.failure_kind = failure
            session.add(attempt)
    assert _value(figures, "attempt_failures_total", kind="build", **{"class": "lost"}) == 2
    assert _value(figures, "attempt_failures_total", kind="build", **{"class": "transient"}) == 1
    assert _value(figures, "child_seconds_total", kind="build", queue=job.queue) == 7.5


def test_webhooks_that_wait_are_counted_with_the_age_of_the_oldest(
    figures: CollectorRegistry, core_sessions: Sessions
) -> None:
    with core_sessions.begin() as session:
        for name, age, tries in (("a", 70, 0), ("b", 20, 1), ("given up", 900, MOST_TRIES)):
            received = NOW - timedelta(seconds=age)
            session.add(GithubDelivery(id=name, event="ping", payload={}, received_at=received, tries=tries))
        session.add(GithubDelivery(id="done", event="ping", payload={}, received_at=NOW, handled_at=NOW))
    assert (_value(figures, "webhooks_waiting"), _value(figures, "webhook_lag_seconds")) == (2, 70)


def test_workers_long_unheard_are_told_apart(figures: CollectorRegistry, core_sessions: Sessions) -> None:
    with core_sessions.begin() as session:
        for name, age in (("a", 1), ("b", 9), ("c", 11)):
            session.add(Worker(name=name, facts={}, last_seen=NOW - timedelta(minutes=age)))
    assert _value(figures, "workers", heard="recently") == 2
    assert _value(figures, "workers", heard="long_ago") == 1


def _attempt(job_id: Any, *, number: int, lease_until: datetime) -> Attempt:
    return Attempt(
        job_id=job_id, number=number, worker_name="w", worker={}, environment_id="e",
        token_hash=f"{job_id}-{number}", lease_until=lease_until,
    )  # fmt: skip
