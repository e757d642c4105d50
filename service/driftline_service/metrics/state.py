"""The state of the queue as Prometheus families, read when it is asked for."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy.orm import Session

from driftline_service.database.engine import Sessions
from driftline_service.database.github_queries import MOST_TRIES
from driftline_service.metrics import queries
from driftline_service.runs.leadership import LOCK_KEY

RECENT = timedelta(minutes=10)
"""A worker heard of within this time counts as recent; an idle one says nothing."""

Family = Callable[[Session, datetime], Metric]


class QueueState(Collector):
    """Reads every family in one short transaction a scrape. `clock` gives the present in UTC."""

    def __init__(self, sessions: Sessions, clock: Callable[[], datetime]) -> None:
        self._sessions = sessions
        self._clock = clock

    def collect(self) -> Iterator[Metric]:
        """Every family.

        Raises:
            sqlalchemy.exc.DBAPIError: if the database is away.
        """
        now = self._clock()
        with self._sessions() as session:
            yield from [metric for family in FAMILIES for metric in family(session, now)]

    def describe(self) -> list[Metric]:
        """Nothing: registering must not touch the database."""
        return []


def _jobs(session: Session, now: datetime) -> Iterator[Metric]:
    unfinished = GaugeMetricFamily(
        "driftline_jobs", "Jobs that are queued or running", labels=["queue", "kind", "state"]
    )
    for queue, kind, state, count in queries.rows(session, queries.JOBS_UNFINISHED):
        unfinished.add_metric([str(queue), str(kind), str(state)], _number(count))
    yield unfinished
    oldest = GaugeMetricFamily(
        "driftline_oldest_queued_job_seconds", "Age of the job that has waited longest", labels=["queue"]
    )
    for queue, seconds in queries.rows(session, queries.OLDEST_QUEUED, now=now):
        oldest.add_metric([str(queue)], _number(seconds))
    yield oldest


def _outcomes(session: Session, _now: datetime) -> Iterator[Metric]:
    outcomes = CounterMetricFamily(
        "driftline_job_outcomes", "Finished jobs by outcome and class of failure", labels=["kind", "state", "class"]
    )
    for kind, state, failure, count in queries.rows(session, queries.JOB_OUTCOMES):
        outcomes.add_metric([str(kind), str(state), str(failure)], _number(count))
    yield outcomes
    failures = CounterMetricFamily(
        "driftline_attempt_failures", "Failed attempts by class, those that were repeated too", labels=["kind", "class"]
    )
    for kind, failure, count in queries.rows(session, queries.ATTEMPT_FAILURES):
        failures.add_metric([str(kind), str(failure)], _number(count))
    yield failures
    seconds = CounterMetricFamily(
        "driftline_child_seconds", "Seconds that children occupied a worker's device", labels=["kind", "queue"]
    )
    for kind, queue, total in queries.rows(session, queries.CHILD_SECONDS):
        seconds.add_metric([str(kind), str(queue)], _number(total))
    yield seconds


def _runs(session: Session, _now: datetime) -> Iterator[Metric]:
    runs = GaugeMetricFamily("driftline_runs", "Runs by state", labels=["state"])
    for state, count in queries.rows(session, queries.RUNS):
        runs.add_metric([str(state)], _number(count))
    yield runs
    verdicts = CounterMetricFamily(
        "driftline_run_verdicts", "Judged runs by their two results", labels=["verdict", "kernel_check"]
    )
    for verdict, check, count in queries.rows(session, queries.VERDICTS):
        verdicts.add_metric([str(verdict), str(check)], _number(count))
    yield verdicts


def _reconciler(session: Session, now: datetime) -> Iterator[Metric]:
    waiting, message_age = queries.rows(session, queries.OUTBOX, now=now)[0]
    overdue, lease_age = queries.rows(session, queries.OVERDUE_LEASES, now=now)[0]
    (present,) = queries.rows(session, queries.RECONCILERS, key=LOCK_KEY)[0]
    yield GaugeMetricFamily("driftline_outbox_due", "Messages that are due and not sent", value=_number(waiting))
    yield GaugeMetricFamily("driftline_leases_overdue", "Running attempts whose lease ran out", value=_number(overdue))
    yield GaugeMetricFamily(
        "driftline_reconciler_lag_seconds",
        "Age of the oldest thing that is due and not done: a message to send, a lease to end",
        value=max(_number(message_age), _number(lease_age)),
    )
    yield GaugeMetricFamily(
        "driftline_reconciler_present", "1 if a reconciler holds the lock that lets it act", value=_number(present)
    )


def _workers(session: Session, now: datetime) -> Iterator[Metric]:
    recent, known = queries.rows(session, queries.WORKERS, since=now - RECENT)[0]
    workers = GaugeMetricFamily("driftline_workers", "Workers, recent ones and those long unheard", labels=["heard"])
    workers.add_metric(["recently"], _number(recent))
    workers.add_metric(["long_ago"], _number(known) - _number(recent))
    yield workers


def _webhooks(session: Session, now: datetime) -> Iterator[Metric]:
    waiting, age = queries.rows(session, queries.WEBHOOKS, now=now, most=MOST_TRIES)[0]
    yield GaugeMetricFamily("driftline_webhooks_waiting", "Webhooks kept and not handled", value=_number(waiting))
    yield GaugeMetricFamily("driftline_webhook_lag_seconds", "Age of the oldest such webhook", value=_number(age))


FAMILIES = (_jobs, _outcomes, _runs, _reconciler, _workers, _webhooks)


def _number(value: object) -> float:
    """PostgreSQL's bigint, numeric, double or null."""
    return 0.0 if value is None else float(str(value))
