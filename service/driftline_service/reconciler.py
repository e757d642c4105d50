"""`python -m driftline_service.reconciler`: advances runs. Any number may run; an advisory lock lets one act.

A process of its own, so that neither a slow judgement nor a crash of it touches what readers and workers are served.
"""

import sys

from pydantic import ValidationError

from driftline_service import logs
from driftline_service.clock import now_utc
from driftline_service.database.engine import make_engine
from driftline_service.dispatch.celery_producer import CeleryProducer
from driftline_service.pulse import touching
from driftline_service.runs.reconciler import Reconciler
from driftline_service.settings import Settings
from driftline_service.stopping import stop_on_signals


def main() -> int:
    try:
        settings = Settings.from_environment()
        producer = CeleryProducer(settings.broker_url.get_secret_value())
    except (ValidationError, ValueError) as error:
        sys.stderr.write(f"driftline: {error}\n")
        return 1
    logs.configure(format=settings.log_format, level=settings.log_level)
    reconciler = Reconciler(make_engine(settings.database_url.get_secret_value()), producer, now_utc)
    reconciler.run_forever(stop_on_signals(), alive=touching(settings.pulse_file))
    return 0


if __name__ == "__main__":
    sys.exit(main())
