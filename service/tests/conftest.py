"""A real PostgreSQL with a migrated database of this session's own. A missing server fails, never skips."""

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from uuid import uuid4

import httpx
import psycopg
import pytest
import uvicorn
from driftline_service import worker_api
from driftline_service.api import problems
from driftline_service.database.engine import Sessions, make_engine, make_sessions
from driftline_service.database.migrate import migrate
from driftline_service.database.tables import Base
from driftline_service.runs.reconciler import Reconciler
from fastapi import FastAPI
from sqlalchemy import Engine, text
from sqlalchemy.engine import URL, make_url

sys.path.insert(0, str(Path(__file__).parent))

from scripted.worker import ScriptedWorker
from scripted.world import Broker, Clock, World

SERVER = os.environ.get("DRIFTLINE_TEST_DATABASE_URL", "postgresql+psycopg://postgres@127.0.0.1:5432/postgres")


def run_on_server(statement: str) -> None:
    dsn = make_url(SERVER).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(dsn, autocommit=True, connect_timeout=5) as connection:
        connection.execute(statement)


def url_of(database: str) -> str:
    url: URL = make_url(SERVER).set(database=database)
    return url.render_as_string(hide_password=False)


def migrated_database() -> Iterator[str]:
    """The URL of a new migrated database, dropped afterwards."""
    name = f"driftline_test_{uuid4().hex[:12]}"
    run_on_server(f"create database {name}")
    run_on_server(f"alter database {name} set synchronous_commit = off")  # no power cut is tested: half the time
    migrate(url_of(name))
    yield url_of(name)
    run_on_server(f"drop database {name} with (force)")


@pytest.fixture
def fresh_url() -> Iterator[str]:
    """A database of this test's own, to migrate at will. It costs two seconds: most tests take `core_engine`."""
    yield from migrated_database()


@pytest.fixture
def fresh_engine(fresh_url: str) -> Iterator[Engine]:
    engine = make_engine(fresh_url)
    yield engine
    engine.dispose()


@pytest.fixture(scope="session")
def core_url() -> Iterator[str]:
    yield from migrated_database()


@pytest.fixture(scope="session")
def shared_engine(core_url: str) -> Iterator[Engine]:
    engine = make_engine(core_url)
    yield engine
    engine.dispose()


@pytest.fixture
def core_engine(shared_engine: Engine) -> Engine:
    """An engine on a database without rows. Only a superuser's role `replica` gets past the append-only log.

    Most tables are empty: to delete takes a thousandth of what TRUNCATE's new files do. The lock waits for who still writes.
    """
    tables = [table.name for table in Base.metadata.sorted_tables]
    statements = [
        "set local session_replication_role = replica",
        f"lock table {', '.join(tables)} in share row exclusive mode",
        *(f"delete from {table}" for table in tables),  # noqa: S608 - the models name them
    ]
    with shared_engine.begin() as connection:
        connection.execute(text("; ".join(statements)))
    return shared_engine


@pytest.fixture
def core_sessions(core_engine: Engine) -> Sessions:
    return make_sessions(core_engine)


@pytest.fixture(scope="session")
def worker_client(shared_engine: Engine) -> Iterator[httpx.Client]:
    """The worker's HTTP on a real port."""
    app = FastAPI()
    app.state.sessions = make_sessions(shared_engine)
    app.include_router(worker_api.router)
    problems.register(app)
    server = uvicorn.Server(uvicorn.Config(app, log_config=None))
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # which asyncio leaves out: 40 ms a reply
        thread = Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        with httpx.Client(base_url=f"http://127.0.0.1:{listener.getsockname()[1]}", timeout=20) as client:
            yield client
        server.should_exit = True
        thread.join(10)


@pytest.fixture
def world(core_engine: Engine, core_sessions: Sessions, worker_client: httpx.Client) -> Iterator[World]:
    broker, clock = Broker(), Clock()
    reconciler = Reconciler(core_engine, broker, clock)
    yield World(core_sessions, broker, clock, reconciler, ScriptedWorker(worker_client), worker_client)
    reconciler.close()
