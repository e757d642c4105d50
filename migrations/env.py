"""How migrations run: one at a time in the whole cluster, each in a transaction of its own, none waiting for ever."""

import os
import re

from alembic import context
from driftline_service.database.engine import make_engine
from driftline_service.database.tables import Base
from sqlalchemy import Connection, text

LOCK_KEY = 0x6472_6966_74_01
"""Advisory lock of migrations: "drift" in ASCII, then 1. The reconciler's ends in 2."""

LOCK_TIMEOUT = "10s"
"""A migration that waits for a table's lock makes everyone behind it wait: rather fail, and be run again."""

STATEMENT_TIMEOUT = "300s"


PARTITION = re.compile(r"(samples|teacher_forced)_(default|\d{4}_\d{2})")
"""Made by the first migration of months and by the reconciler: no model declares them."""


def run() -> None:
    url = context.config.attributes.get("database_url") or os.environ["DRIFTLINE_DATABASE_URL"]
    engine = make_engine(url)
    try:
        with engine.connect() as connection:
            connection.execute(text("select pg_advisory_lock(:key)"), {"key": LOCK_KEY})
            connection.commit()
            try:
                migrate(connection)
            finally:
                connection.rollback()
                connection.execute(text("select pg_advisory_unlock(:key)"), {"key": LOCK_KEY})
                connection.commit()
    finally:
        engine.dispose()


def is_declared(name: str | None, kind: str, _parents: object) -> bool:
    """Whether autogenerate should look at it."""
    return kind != "table" or PARTITION.fullmatch(name or "") is None


def migrate(connection: Connection) -> None:
    connection.execute(text(f"set lock_timeout = '{LOCK_TIMEOUT}'"))
    connection.execute(text(f"set statement_timeout = '{STATEMENT_TIMEOUT}'"))
    connection.commit()
    context.configure(connection=connection, target_metadata=Base.metadata, transaction_per_migration=True,
                      include_name=is_declared)  # fmt: skip
    with context.begin_transaction():
        context.run_migrations()


run()
