"""The state of the queue as Prometheus families, read when it is asked for."""

from collections.abc import Callable, Iterator
from datetime import datetime

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy.orm import Session

from driftline_service.api.workers import QUIET
from driftline_service.database.engine import Sessions
from driftline_service.database.github_queries import MOST_TRIES
from driftline_service.metrics import queries
from driftline_service.runs.leadership import LOCK_KEY

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
    oldest = GaugeMetricFamily(
        "driftline_oldest_queued_job_seconds", "How long the job has waited that waits longest", labels=["queue"]
    )
    yield _filled(unfinished, queries.rows(session, queries.JOBS_UNFINISHED))
    yield _filled(oldest, queries.rows(session, queries.OLDEST_QUEUED, now=now))


def _outcomes(session: Session, _now: datetime) -> Iterator[Metric]:
    outcomes = CounterMetricFamily(
        "driftline_job_outcomes", "Finished jobs by outcome and class of failure", labels=["kind", "state", "class"]
    )
    failures = CounterMetricFamily(
        "driftline_attempt_failures", "Failed attempts by class, those that were repeated too", labels=["kind", "class"]
    )
    seconds = CounterMetricFamily(
        "driftline_child_seconds", "Seconds that children occupied a worker's device", labels=["kind", "queue"]
    )
    yield _filled(outcomes, queries.rows(session, queries.JOB_OUTCOMES))
    yield _filled(failures, queries.rows(session, queries.ATTEMPT_FAILURES))
    yield _filled(seconds, queries.rows(session, queries.CHILD_SECONDS))


def _runs(session: Session, _now: datetime) -> Iterator[Metric]:
    runs = GaugeMetricFamily("driftline_runs", "Runs by state", labels=["state"])
    verdicts = CounterMetricFamily(
        "driftline_run_verdicts", "Judged runs by their two results", labels=["verdict", "kernel_check"]
    )
    yield _filled(runs, queries.rows(session, queries.RUNS))
    yield _filled(verdicts, queries.rows(session, queries.VERDICTS))


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
    recent, known = queries.rows(session, queries.WORKERS, since=now - QUIET)[0]
    workers = GaugeMetricFamily("driftline_workers", "Workers, recent ones and those long unheard", labels=["heard"])
    workers.add_metric(["recently"], _number(recent))
    workers.add_metric(["long_ago"], _number(known) - _number(recent))
    yield workers


def _webhooks(session: Session, now: datetime) -> Iterator[Metric]:
    waiting, age = queries.rows(session, queries.WEBHOOKS, now=now, most=MOST_TRIES)[0]
    yield GaugeMetricFamily("driftline_webhooks_waiting", "Webhooks kept and not handled", value=_number(waiting))
    yield GaugeMetricFamily("driftline_webhook_lag_seconds", "Age of the oldest such webhook", value=_number(age))


FAMILIES = (_jobs, _outcomes, _runs, _reconciler, _workers, _webhooks)


def _filled(family: GaugeMetricFamily | CounterMetricFamily, rows: queries.Rows) -> Metric:
    """The family with a figure a row: the labels' values in their order, then the figure."""
    for *labels, figure in rows:
        family.add_metric([str(label) for label in labels], _number(figure))
    return family


def _number(value: object) -> float:
    """PostgreSQL's bigint, numeric, double or null."""
    return 0.0 if value is None else float(str(value))
