"""`python -m driftline_service.github`: answers GitHub's webhooks and keeps pull requests up to date.

A process of its own: neither a slow git server nor GitHub's rate limit may hold up runs, readers or workers. Any number may
run; an advisory lock lets one act.
"""

import signal
import sys
import threading
from datetime import UTC, datetime
from types import FrameType

from pydantic import ValidationError
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from driftline_service import logs
from driftline_service.database.engine import make_engine, make_sessions
from driftline_service.github.client import AppClient
from driftline_service.github.desk import Desk
from driftline_service.github.measuring import Measuring
from driftline_service.github.showcase import Showcase
from driftline_service.lanes import ConfigurationError, read_lanes
from driftline_service.settings import Settings

LOCK_KEY = 0x6472_6966_74_03
"""Advisory lock of this process; the reconciler's ends in 2."""

PAUSE_SECONDS = 1.0


def main() -> int:
    """The exit code: 0 after a stop that was asked for, 1 if it cannot start as it is set up."""
    try:
        settings = Settings.from_environment()
        lanes = read_lanes(settings.config_path)
    except (ValidationError, ConfigurationError) as error:
        sys.stderr.write(f"driftline: {error}\n")
        return 1
    if settings.github_app_id is None or settings.github_private_key is None:
        sys.stderr.write("driftline: no GitHub App is configured; docs/github.md says which settings it needs\n")
        return 1
    logs.configure(format=settings.log_format, level=settings.log_level)
    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    engine = make_engine(settings.database_url.get_secret_value())
    sessions = make_sessions(engine)
    key = settings.github_private_key.get_secret_value()
    client = AppClient(settings.github_app_id, key, settings.github_api_url)
    desk = Desk(sessions, client, Measuring(lanes, settings), settings.github_label, now)
    serve(engine, desk, Showcase(sessions, client, settings.public_url, now), stop)
    return 0


def serve(engine: Engine, desk: Desk, showcase: Showcase, stop: threading.Event) -> None:
    """Work until `stop` is set. A database that goes away is waited for; another one at work is left to it."""
    log = logs.logger("driftline.github")
    while not stop.is_set():
        try:
            _hold_lock_and_work(engine, desk, showcase, stop)
        except DBAPIError as error:
            log.warning("the database is away", error=str(error))
        stop.wait(PAUSE_SECONDS)


def _hold_lock_and_work(engine: Engine, desk: Desk, showcase: Showcase, stop: threading.Event) -> None:
    """As long as the lock's connection lives. It is thrown away afterwards, since the lock lives as long as it."""
    with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        try:
            mine = connection.execute(text("select pg_try_advisory_lock(:key)"), {"key": LOCK_KEY}).scalar_one()
            while mine and not stop.is_set():
                connection.execute(text("select 1"))
                while desk.step() and not stop.is_set():
                    pass
                showcase.step()
                stop.wait(PAUSE_SECONDS)
        finally:
            connection.invalidate()


def now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    sys.exit(main())
