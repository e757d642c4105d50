"""Celery as this worker uses it: it brings messages, nothing else. No results, no pickles, no remote control."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import structlog
from celery import Celery
from driftline.contracts.worker_api import WORKER_TASK

from driftline_worker import mailbox, redis_transport

POLLING_SECONDS = 0.02
"""Of the folder that stands in for a broker server; a look takes some microseconds."""

VISIBILITY_SECONDS = 6 * 3600
"""Redis gives a message that was not acknowledged to another worker after this; its claim token is dead by then."""

Serve = Callable[[UUID, str], None]
_log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger("driftline.worker")


def make_app(broker_url: str, serve: Serve) -> Celery:
    """An application whose one task calls `serve(job id, claim token)`.

    Raises:
        ValueError: if a filesystem URL names no absolute folder.
    """
    app = Celery("driftline-worker")
    app.set_default()  # else the threads of the pool find another application, and lose what they report
    app.conf.update(
        **_broker(broker_url),
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_acks_late=True,
        worker_prefetch_multiplier=1,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        worker_enable_remote_control=False,
        worker_hijack_root_logger=False,
        worker_redirect_stdouts=False,
    )
    app.task(name=WORKER_TASK)(_task(serve))
    return app


def _broker(url: str) -> dict[str, Any]:
    if url.startswith(mailbox.FOLDER):
        return {
            "broker_url": mailbox.FOLDER,
            "broker_transport": f"{mailbox.__name__}:Transport",
            "broker_transport_options": mailbox.options(url) | {"polling_interval": POLLING_SECONDS},
        }
    found: dict[str, Any] = {
        "broker_url": url,
        "broker_transport_options": {"visibility_timeout": VISIBILITY_SECONDS},
    }
    if url.startswith(redis_transport.URL):
        found["broker_transport"] = f"{redis_transport.__name__}:Transport"
    return found


def _task(serve: Serve) -> Callable[[str, str], None]:
    def take(job_id: str, claim_token: str) -> None:
        try:
            job = UUID(job_id)
        except ValueError:
            _log.warning("message dropped: its job id is none", job_id=job_id[:80])
            return
        serve(job, claim_token)

    return take
