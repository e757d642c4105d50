"""`python -m driftline_worker`: a worker that serves a queue until it is told to stop."""

import platform
import sys
import threading

import structlog
from celery import signals
from driftline.contracts.worker_api import WorkerFacts
from pydantic import ValidationError

from driftline_worker import logs, sandbox, scratch
from driftline_worker.bench import Bench
from driftline_worker.celery_app import make_app
from driftline_worker.client import ServiceClient
from driftline_worker.eval_environment import EnvironmentBroken, EvalEnvironment
from driftline_worker.gpu_lock import GpuHeld, gpus_held
from driftline_worker.held_attempts import HeldAttempts
from driftline_worker.housekeeping import keep_clean
from driftline_worker.running_attempts import RunningAttempts
from driftline_worker.sandbox import SandboxMissing
from driftline_worker.settings import ENVIRONMENT_PREFIX, WorkerSettings
from driftline_worker.work import Desk, drained, work

CANNOT_START = 2

STOP_CLEANING_SECONDS = 5.0
"""A clean-up that is cut short is finished by the next."""
_log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger("driftline.worker")


def main() -> int:
    """The exit code: 0 after a stop that was asked for, 2 if the worker cannot start as it is set up."""
    try:
        settings = WorkerSettings.from_environment()
        logs.configure(settings.log_level)
        with gpus_held(settings):
            return _serve(settings)
    except ValidationError as error:
        for problem in error.errors():
            name = ENVIRONMENT_PREFIX + "_".join(str(part) for part in problem["loc"]).upper()
            sys.stderr.write(f"{name}: {problem['msg']}\n")
    except (EnvironmentBroken, GpuHeld, SandboxMissing, ValueError) as error:
        sys.stderr.write(f"{error}\n")
    return CANNOT_START


def _serve(settings: WorkerSettings) -> int:
    hurry = threading.Event()
    scratch.remove_leftovers(settings.scratch)
    desk = _desk(settings, hurry)
    _give_back(desk)
    app = make_app(settings.broker_url.get_secret_value(), lambda job, token: work(desk, job, token))

    def drain(**_: object) -> None:
        drained(desk, hurry)

    signals.worker_shutting_down.connect(drain, weak=False)
    worker = app.Worker(
        pool="threads", concurrency=settings.concurrency, hostname=f"driftline@{settings.name}",
        queues=list(settings.served_queues), without_gossip=True, without_mingle=True, without_heartbeat=True,
        loglevel=settings.log_level, quiet=True,
    )  # fmt: skip
    _log.info("worker serves", queues=settings.served_queues, sandbox=desk.facts.sandbox, name=settings.name)
    stop = threading.Event()
    cleaning = keep_clean(settings, stop)
    worker.start()
    stop.set()
    cleaning.join(STOP_CLEANING_SECONDS)
    desk.client.close()
    return int(worker.exitcode or 0)


def _desk(settings: WorkerSettings, hurry: threading.Event) -> Desk:
    environment = EvalEnvironment.probe(settings.eval_python, settings.eval_lock)
    chosen = sandbox.choose(environment, settings.sandbox)
    facts = WorkerFacts(
        name=settings.name, host=platform.node(), gpu_type=settings.gpu_type,
        environment_id=environment.identity, sandbox=chosen.kind,
    )  # fmt: skip
    client = ServiceClient(settings.service_url, retry_seconds=settings.retry_seconds, hurry=hurry)
    return Desk(
        Bench(settings, chosen, settings.concurrency),
        client,
        facts,
        RunningAttempts(),
        HeldAttempts(settings.held_attempts),
    )


def _give_back(desk: Desk) -> None:
    """On a thread of its own: a service that is away must not keep the worker from serving once it is back."""
    threading.Thread(target=desk.held.give_back, args=(desk.client.finish,), name="give back", daemon=True).start()


if __name__ == "__main__":
    sys.exit(main())
