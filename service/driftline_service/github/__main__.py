"""`python -m driftline_service.github`: answers GitHub's webhooks and keeps pull requests up to date.

A process of its own: neither a slow git server nor GitHub's rate limit may hold up runs, readers or workers. Any number may
run; an advisory lock lets one act.
"""

import sys
import threading

from pydantic import ValidationError
from sqlalchemy.exc import DBAPIError

from driftline_service import logs
from driftline_service.clock import now_utc
from driftline_service.database.engine import make_engine, make_sessions
from driftline_service.github.client import AppClient
from driftline_service.github.desk import Desk
from driftline_service.github.measuring import Measuring
from driftline_service.github.presence import Presence
from driftline_service.github.showcase import Showcase
from driftline_service.lanes import ConfigurationError, read_lanes
from driftline_service.runs.leadership import Leadership
from driftline_service.settings import Settings
from driftline_service.stopping import stop_on_signals

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
    engine = make_engine(settings.database_url.get_secret_value())
    sessions = make_sessions(engine)
    key = settings.github_private_key.get_secret_value()
    client = AppClient(settings.github_app_id, key, settings.github_api_url)
    desk = Desk(sessions, client, Measuring(lanes, settings, client), settings.github_label, now_utc)
    showcase = Showcase(sessions, client, settings.public_url, now_utc)
    presence = Presence(sessions, client, now_utc)
    serve(Leadership(engine, LOCK_KEY), (desk, showcase, presence), stop_on_signals())
    return 0


def serve(leadership: Leadership, parts: tuple[Desk, Showcase, Presence], stop: threading.Event) -> None:
    """Work until `stop` is set. A database that goes away is waited for; another one at work is left to it."""
    desk, showcase, presence = parts
    log = logs.logger("driftline.github")
    while not stop.is_set():
        try:
            if leadership.held():
                while desk.step() and not stop.is_set():
                    pass
                showcase.step()
                presence.step()
        except DBAPIError as error:
            log.warning("the database is away", error=str(error))
        stop.wait(PAUSE_SECONDS)
    leadership.release()


if __name__ == "__main__":
    sys.exit(main())
