"""Celery's Redis transport, made safe for a server that goes away while a worker is busy.

kombu keeps a message whose acknowledgement found no server among those that wait for one, and takes no more than it may
prefetch. A worker with its hands full asks the server for nothing, so it does not notice the loss either: it would never
take a message again.
"""

from typing import Any

from kombu.transport import redis, virtual

URL = "redis://"


class QoS(redis.QoS):
    """Counts the messages that a worker has."""

    def ack(self, delivery_tag: Any) -> None:
        """As kombu's, but a message counts no more even if the server could not be told. Raises what kombu's does.

        A server that still has it gives it to somebody again; the service answers that its claim token is spent.
        """
        try:
            self._remove_from_indices(delivery_tag).execute()  # type: ignore[no-untyped-call]
        finally:
            virtual.QoS.ack(self, delivery_tag)  # type: ignore[no-untyped-call]


class Channel(redis.Channel):
    QoS = QoS


class Transport(redis.Transport):
    Channel = Channel
