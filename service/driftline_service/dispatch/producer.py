"""What the outbox needs of a broker."""

from typing import Protocol
from uuid import UUID


class BrokerDown(Exception):  # noqa: N818 - what it is
    """The broker did not take the message; it will be sent again."""


class Producer(Protocol):
    """Takes messages for workers. A message taken may still be lost or arrive twice."""

    def send(self, queue: str, job_id: UUID, claim_token: str, *, priority: int) -> None:
        """Put one message on a queue. The smaller its priority (driftline_service.runs.priority), the sooner it is served,
        where the broker can tell; else in the order in which they came.

        Raises:
            BrokerDown: if the broker did not take it.
        """
