"""Keeps webhooks, each once: those that come while one transaction is on its way share the next one, and its fsync.

Nobody is told that a delivery is kept before its transaction is committed. The connection is this class's own and lives in
the event loop: no thread, no pool and no ping stand between a webhook and its answer.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import psycopg

from driftline_service.database.engine import CONNECT_SECONDS

WRITE_SECONDS = 8
"""GitHub hangs up after 10."""

MOST_BYTES = 16 << 20
"""Of payloads in one transaction, beside its first: a batch of the largest webhooks would hold up all others."""

KEEP = """
insert into github_deliveries (id, event, signature, payload, received_at)
select id, event, signature, payload::jsonb, now() + place * interval '1 microsecond'
from unnest(%b::text[], %b::text[], %b::text[], %b::text[]) with ordinality as given (id, event, signature, payload, place)
order by place
on conflict do nothing
returning id
"""
"""Each has a time of its own, by which the desk takes them in the order in which they came. Neither an id nor a signature is
kept twice."""

HERE = "select id from github_deliveries where id = any(%b::text[])"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A webhook whose signature was right. `payload` is JSON that PostgreSQL can hold.

    GitHub signs the body and neither the id nor the event's name, so that a body that was here, under whatever names, counts as
    a replay. What GitHub itself sends again keeps its id; its payloads carry an id of their own or a time (docs/github.md).
    """

    id: str
    event: str
    signature: str
    payload: str


class ReplayError(Exception):
    """This very body was here under another id."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    delivery: Delivery
    kept: "asyncio.Future[bool]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def answer(self, kept: bool) -> None:
        if not self.kept.done():  # else the one who asked is gone
            self.kept.set_result(kept)

    def refuse(self, error: Exception) -> None:
        if not self.kept.done():
            self.kept.set_exception(error)


class Deliveries:
    """The one writer of `github_deliveries` in a process. Belongs to one event loop."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._connection: psycopg.AsyncConnection | None = None
        self._waiting: list[_Waiting] = []
        self._writing: asyncio.Task[None] | None = None

    async def keep(self, delivery: Delivery) -> bool:
        """Whether it is new; committed when this returns.

        Raises:
            ReplayError: if its body was here under another id; nothing is kept.
            psycopg.DataError: if PostgreSQL cannot hold this payload.
            psycopg.OperationalError: if the database is away; nothing is kept then, or it is and will be found kept.
        """
        waiting = _Waiting(delivery)
        self._waiting.append(waiting)
        if self._writing is None or self._writing.done():
            self._writing = asyncio.create_task(self._write_all())
        return await waiting.kept

    async def close(self) -> None:
        """Give the connection back; what is being written is written to its end."""
        if self._writing is not None:
            await self._writing
        if self._connection is not None:
            await self._connection.close()

    async def _write_all(self) -> None:
        while self._waiting:
            await self._write(self._next_batch())

    def _next_batch(self) -> list[_Waiting]:
        """Those that wait, the first at any rate, as far as they are not too large together."""
        size, taken = 0, 1
        for one in self._waiting[1:]:
            size += len(one.delivery.payload)
            if size > MOST_BYTES:
                break
            taken += 1
        batch, self._waiting = self._waiting[:taken], self._waiting[taken:]
        return batch

    async def _write(self, batch: Sequence[_Waiting]) -> None:
        """Answer each, whatever happens: whoever waits would wait for ever."""
        try:
            new, here = await self._insert([one.delivery for one in batch])
        except psycopg.DataError as error:
            if len(batch) == 1:
                batch[0].refuse(error)
            else:  # a payload that cannot be held refuses itself alone
                for one in batch:
                    await self._write([one])
        except Exception as error:
            for one in batch:
                one.refuse(error)
        else:
            for one in batch:
                if one.delivery.id in here:
                    one.answer(one.delivery.id in new)
                    new.discard(one.delivery.id)  # the same again in this batch is a repetition
                else:
                    one.refuse(ReplayError(one.delivery.id))

    async def _insert(self, deliveries: Sequence[Delivery]) -> tuple[set[str], set[str]]:
        """The ids that were new, and all that are kept now.

        A connection that turns out to be dead is replaced once: repeating keeps nothing twice.
        """
        columns = [[getattr(one, name) for one in deliveries] for name in ("id", "event", "signature", "payload")]
        for last in (False, True):
            connection = await self._connected()
            try:
                cursor = await connection.execute(KEEP, columns)
                new = {row[0] for row in await cursor.fetchall()}
                others = [one.id for one in deliveries if one.id not in new]
                if not others:  # as a rule
                    return new, new.copy()
                cursor = await connection.execute(HERE, [others])
                return new, new | {row[0] for row in await cursor.fetchall()}
            except psycopg.OperationalError:
                if last or not connection.closed:
                    raise
        raise AssertionError("unreachable")

    async def _connected(self) -> psycopg.AsyncConnection:
        if self._connection is None or self._connection.closed:
            self._connection = await psycopg.AsyncConnection.connect(
                self._dsn, autocommit=True, connect_timeout=CONNECT_SECONDS, application_name="driftline webhooks",
                options=f"-c timezone=UTC -c statement_timeout={WRITE_SECONDS}s", tcp_user_timeout=WRITE_SECONDS * 1000,
            )  # fmt: skip
        return self._connection
