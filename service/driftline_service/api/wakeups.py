"""One LISTEN connection per process, fanned out to all who wait for news of a run. The news are read elsewhere."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import psycopg

from driftline_service.database.tables import EVENTS_CHANNEL, PROGRESS_CHANNEL
from driftline_service.logs import logger

RECONNECT_SECONDS = 2.0

_log = logger("driftline.wakeups")


class Wakeups:
    """Turns notifications into asyncio events. A lost one costs delay, never news: waiters also time out."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._waiting: defaultdict[UUID, set[asyncio.Event]] = defaultdict(set)

    @contextmanager
    def of(self, run_id: UUID) -> Iterator[asyncio.Event]:
        """An event that is set whenever the run has news; the waiter clears it.

        It is set from the start: what was committed after the waiter last read and before this was told to nobody.
        """
        event = asyncio.Event()
        event.set()
        self._waiting[run_id].add(event)
        try:
            yield event
        finally:
            self._waiting[run_id].discard(event)
            if not self._waiting[run_id]:
                del self._waiting[run_id]

    async def listen(self) -> None:
        """Listen for ever; reconnect when the database was away."""
        while True:
            try:
                await self._listen_once()
            except psycopg.Error as error:
                _log.warning("listen_lost", error=str(error))
            await asyncio.sleep(RECONNECT_SECONDS)

    async def _listen_once(self) -> None:
        async with await psycopg.AsyncConnection.connect(self._dsn, autocommit=True) as connection:
            for channel in (EVENTS_CHANNEL, PROGRESS_CHANNEL):
                await connection.execute(f"LISTEN {channel}")
            self._wake_all()  # what was committed while nobody listened
            async for notification in connection.notifies():
                self._wake(notification.payload)

    def _wake(self, payload: str) -> None:
        try:
            run_id = UUID(payload)
        except ValueError:
            return
        for event in self._waiting.get(run_id, ()):
            event.set()

    def _wake_all(self) -> None:
        for events in self._waiting.values():
            for event in events:
                event.set()
