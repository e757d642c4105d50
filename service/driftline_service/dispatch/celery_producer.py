"""The Celery side of the service: it only sends. Results, retries and pickles are off; PostgreSQL knows better."""

from pathlib import Path
from typing import Any
from uuid import UUID

from celery import Celery
from driftline.contracts.worker_api import WORKER_TASK
from kombu.exceptions import OperationalError

from driftline_service.dispatch.producer import BrokerDown

FILESYSTEM = "filesystem://"
CONNECT_SECONDS = 2
"""A broker on the same network answers at once; the outbox tries again soon."""


class CeleryProducer:
    """Sends WORKER_TASK with (job id, claim token) to the queue a worker of the right kind listens on."""

    def __init__(self, broker_url: str) -> None:
        self._app = make_app(broker_url)

    def send(self, queue: str, job_id: UUID, claim_token: str, *, priority: int) -> None:
        """As Producer.send."""
        arguments = (str(job_id), claim_token)
        try:
            self._app.send_task(
                WORKER_TASK, args=arguments, queue=queue, priority=priority, ignore_result=True, retry=False
            )
        except (OperationalError, OSError) as error:
            raise BrokerDown(f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        self._app.close()


def make_app(broker_url: str) -> Celery:
    """A Celery application for `redis://…`, or `filesystem:///absolute/folder` where there is no broker server.

    Raises:
        ValueError: if a filesystem URL names no absolute folder.
    """
    app = Celery("driftline", set_as_current=False)
    app.conf.update(
        broker_url=FILESYSTEM if broker_url.startswith(FILESYSTEM) else broker_url,
        broker_transport_options=_transport_options(broker_url),
        broker_connection_timeout=CONNECT_SECONDS,
        broker_connection_retry=False,
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        worker_hijack_root_logger=False,
    )
    return app


def _transport_options(broker_url: str) -> dict[str, Any]:
    if not broker_url.startswith(FILESYSTEM):
        return {"socket_connect_timeout": CONNECT_SECONDS, "socket_timeout": CONNECT_SECONDS}
    folder = Path(broker_url.removeprefix(FILESYSTEM))
    if not folder.is_absolute():
        raise ValueError(f"broker URL {broker_url!r} names no absolute folder; write filesystem:///absolute/folder")
    messages, control = folder / "messages", folder / "control"
    messages.mkdir(parents=True, exist_ok=True)
    control.mkdir(exist_ok=True)
    return {
        "data_folder_in": str(messages), "data_folder_out": str(messages), "control_folder": str(control),
        "store_processed": False,
    }  # fmt: skip
