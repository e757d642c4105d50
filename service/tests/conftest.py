"""A real PostgreSQL: one migrated template a session, a copy of it for each test. A missing server fails, never skips."""

import os
from collections.abc import Iterator
from uuid import uuid4

import psycopg
import pytest
from driftline_service.database.engine import Sessions, make_engine, make_sessions
from driftline_service.database.migrate import migrate
from sqlalchemy import Engine
from sqlalchemy.engine import URL, make_url

SERVER = os.environ.get("DRIFTLINE_TEST_DATABASE_URL", "postgresql+psycopg://postgres@127.0.0.1:5432/postgres")


def run_on_server(statement: str) -> None:
    dsn = make_url(SERVER).set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(dsn, autocommit=True, connect_timeout=5) as connection:
        connection.execute(statement)


def url_of(database: str) -> str:
    url: URL = make_url(SERVER).set(database=database)
    return url.render_as_string(hide_password=False)


@pytest.fixture(scope="session")
def template_database() -> Iterator[str]:
    """The name of a migrated database that nobody connects to: PostgreSQL copies only such a one."""
    name = f"driftline_test_{uuid4().hex[:12]}"
    run_on_server(f"create database {name}")
    migrate(url_of(name))
    yield name
    run_on_server(f"drop database {name} with (force)")


@pytest.fixture
def fresh_url(template_database: str) -> Iterator[str]:
    """The URL of this test's own migrated database."""
    name = f"driftline_test_{uuid4().hex[:12]}"
    run_on_server(f"create database {name} template {template_database}")
    yield url_of(name)
    run_on_server(f"drop database {name} with (force)")


@pytest.fixture
def fresh_engine(fresh_url: str) -> Iterator[Engine]:
    engine = make_engine(fresh_url)
    yield engine
    engine.dispose()


@pytest.fixture
def fresh_sessions(fresh_engine: Engine) -> Sessions:
    return make_sessions(fresh_engine)
