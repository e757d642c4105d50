"""`python -m driftline_service.reconciler`: advances runs. Any number may run; an advisory lock lets one act.

A process of its own, so that neither a slow judgement nor a crash of it touches what readers and workers are served.
"""

import signal
import sys
import threading
from datetime import UTC, datetime
from types import FrameType

from pydantic import ValidationError

from driftline_service import logs
from driftline_service.database.engine import make_engine
from driftline_service.dispatch.celery_producer import CeleryProducer
from driftline_service.runs.reconciler import Reconciler
from driftline_service.settings import Settings


def main() -> int:
    try:
        settings = Settings.from_environment()
        producer = CeleryProducer(settings.broker_url.get_secret_value())
    except (ValidationError, ValueError) as error:
        sys.stderr.write(f"driftline: {error}\n")
        return 1
    logs.configure(format=settings.log_format, level=settings.log_level)
    stop = threading.Event()

    def on_signal(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
    Reconciler(make_engine(settings.database_url.get_secret_value()), producer, now).run_forever(stop)
    return 0


def now() -> datetime:
    return datetime.now(UTC)


if __name__ == "__main__":
    sys.exit(main())
