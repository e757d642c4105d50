"""The connection of a reconciler: it holds the advisory lock that makes it the only one, and hears notifications."""

from typing import Any

from sqlalchemy import Connection, Engine, text

from driftline_service.database.tables import EVENTS_CHANNEL

LOCK_KEY = 0x6472_6966_74_02
"""Advisory lock of reconcilers; that of migrations ends in 1."""


class Leadership:
    """Held as long as its connection lives: a process that dies frees it at once. `key` is what only one may hold."""

    def __init__(self, engine: Engine, key: int = LOCK_KEY) -> None:
        self._engine, self._key = engine, key
        self._connection: Connection | None = None
        self._leads = False

    def held(self) -> bool:
        """Whether this is the one, taking the lock if it is free.

        Raises:
            sqlalchemy.exc.DBAPIError: if the database is away; the lock is lost then.
        """
        try:
            connection = self._connected()
            connection.execute(text("select 1"))
            if not self._leads:
                taken = connection.execute(text("select pg_try_advisory_lock(:key)"), {"key": self._key}).scalar_one()
                self._leads = bool(taken)
        except Exception:
            self.release()
            raise
        return self._leads

    def wait(self, seconds: float) -> None:
        """Until something happened to a run, or for so long. Many notifications at once count as one."""
        driver: Any = self._connected().connection.driver_connection
        for _ in driver.notifies(timeout=seconds, stop_after=1):
            pass

    def release(self) -> None:
        """Give the lock back with the connection. Also right after the connection was lost."""
        connection, self._connection, self._leads = self._connection, None, False
        if connection is not None:
            connection.invalidate()
            connection.close()

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            self._connection.execute(text(f"listen {EVENTS_CHANNEL}"))
        return self._connection
