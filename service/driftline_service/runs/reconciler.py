"""The one place that advances runs. It reacts to no message: it looks at the world and does what is due.

So a lost message, a late report and a crash between any two steps heal at the next look. Each step is a transaction of
its own that may be repeated; an advisory lock keeps a second reconciler idle.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from threading import Event as StopEvent
from uuid import UUID

import psycopg
from driftline.contracts.words import RunState
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.orm import Session

from driftline_service.bisects.stepping import step_all
from driftline_service.database import attempt_queries, job_queries, months, outbox_queries, run_queries
from driftline_service.database.engine import make_sessions
from driftline_service.dispatch.producer import Producer
from driftline_service.dispatch.sender import Sender
from driftline_service.logs import about, logger
from driftline_service.runs.advance import advance
from driftline_service.runs.cancellation import fail
from driftline_service.runs.judgement import judge_run
from driftline_service.runs.leadership import Leadership
from driftline_service.runs.outcomes import LEASE_EXPIRED, give_up

LONGEST_PAUSE = 1.0
"""Seconds between two looks. Notifications come sooner; time-outs do not notify."""

RECONNECT_PAUSE = 1.0
"""Seconds before the next try when the database is away."""

KEPT = timedelta(days=1)
"""How long spent tokens and sent messages are kept, to be looked at when something went wrong."""

_log = logger("driftline.reconciler")


class Reconciler:
    """Advances every unfinished run. `clock` gives the present in UTC, so that tests can let time pass."""

    def __init__(self, engine: Engine, producer: Producer, clock: Callable[[], datetime]) -> None:
        self._sessions = make_sessions(engine)
        self._sender = Sender(self._sessions, producer, clock)
        self._clock = clock
        self._leadership = Leadership(engine)
        self._next_sweep = datetime.min.replace(tzinfo=clock().tzinfo)

    def step(self) -> bool:
        """One look at the world; False if another reconciler is at work.

        Raises:
            sqlalchemy.exc.DBAPIError: if the database is away.
        """
        if not self._leadership.held():
            return False
        self._expire_leases()
        step_all(self._sessions, self._clock())
        with self._sessions() as session:
            run_ids = run_queries.active_run_ids(session)
        for run_id in run_ids:
            with about(run_id=run_id):
                self._look_at(run_id)
        self._sender.send_due()
        self._sweep()
        return True

    def run_forever(self, stop: StopEvent, alive: Callable[[], None] = lambda: None) -> None:
        """Look until `stop` is set, and say `alive` at each turn. A database that goes away is waited for."""
        while not stop.is_set():
            alive()
            try:
                self.step()
                self._leadership.wait(LONGEST_PAUSE)
            except (DBAPIError, psycopg.Error) as error:  # the driver's own while it waits for notifications
                _log.warning("the database is away", error=str(error))
                self._leadership.release()
                stop.wait(RECONNECT_PAUSE)
        self.close()

    def close(self) -> None:
        """Let another reconciler take over."""
        self._leadership.release()

    def _look_at(self, run_id: UUID) -> None:
        """The root handler of a run: a bug in its judgement ends it, named, and leaves the others running.

        A look is not waited for to reach the disk, since the next one would do the same: locking a run costs an fsync
        otherwise, each second. Before a message leaves, its token is committed for good, and all looks with it.
        """
        try:
            with self._sessions.begin() as session:
                run_queries.do_not_wait_for_disk(session)
                state = advance(session, run_id, self._clock())
            if state is RunState.JUDGING:
                judge_run(self._sessions, run_id, self._clock())
        except DBAPIError:
            raise
        except Exception as error:
            _log.exception("a run could not be advanced")
            with self._sessions.begin() as session:
                fail(session, run_id, reason="internal_error", message=f"{type(error).__name__}: {error}")

    def _expire_leases(self) -> None:
        now = self._clock()
        with self._sessions() as session:
            expired = attempt_queries.expired_attempt_ids(session, now)
        for attempt_id in expired:
            with self._sessions.begin() as session:
                self._expire(session, attempt_id, now)

    @staticmethod
    def _expire(session: Session, attempt_id: UUID, now: datetime) -> None:
        attempt = attempt_queries.attempt_by_id(session, attempt_id)
        if attempt is None:
            return
        job_queries.lock_job(session, attempt.job_id)
        attempt = attempt_queries.lock_attempt(session, attempt_id)
        if attempt.lease_until < now:  # else a report came between the look and the lock
            give_up(session, attempt, LEASE_EXPIRED, now)

    def _sweep(self) -> None:
        now = self._clock()
        if now >= self._next_sweep:
            self._next_sweep = now + KEPT / 24
            with self._sessions.begin() as session:
                outbox_queries.sweep(session, now - KEPT)
            self._make_months(now)

    def _make_months(self, now: datetime) -> None:
        """Tables of the months to come. One that cannot be had now is made at the next sweep: till then the default
        partition takes what comes, and nothing is refused."""
        with self._sessions() as session:
            missing = months.missing_months(session, now.date())
        for table, month in missing:
            try:
                with self._sessions.begin() as session:
                    months.make_month(session, table, month)
            except OperationalError as error:
                _log.warning("a month's table was not made yet", table=table, month=str(month), error=str(error.orig))
