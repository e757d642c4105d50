"""Engine and sessions from a URL. Nothing is connected at import."""

from sqlalchemy import Engine, create_engine
from sqlalchemy.orm import Session, sessionmaker

CONNECT_SECONDS = 5
"""A database that does not answer within this is down: callers retry or say so, they do not hang."""

STATEMENT_SECONDS = 60
"""No statement of the service takes near as long; one that does holds locks that others wait for."""

Sessions = sessionmaker[Session]


def make_engine(database_url: str) -> Engine:
    """An engine whose pool notices a restarted server (`pool_pre_ping`) and whose times are UTC."""
    options = f"-c timezone=UTC -c statement_timeout={STATEMENT_SECONDS}s"
    return create_engine(
        database_url,
        pool_pre_ping=True,
        connect_args={"connect_timeout": CONNECT_SECONDS, "options": options, "application_name": "driftline"},
    )


def make_sessions(engine: Engine) -> Sessions:
    """Sessions whose objects stay readable after commit; use `with sessions.begin() as session`."""
    return sessionmaker(engine, expire_on_commit=False)
