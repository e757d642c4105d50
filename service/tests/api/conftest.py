"""The real application on a real port over a database of its own, and a small git repository to submit."""

import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
import uvicorn
from driftline_service import logs
from driftline_service.app import create_app
from driftline_service.database.engine import Sessions, make_engine, make_sessions
from driftline_service.database.migrate import migrate
from driftline_service.settings import Settings
from git_repository import branch, commit, git, start
from pydantic import SecretStr
from sqlalchemy.engine import make_url

SERVER = os.environ.get("DRIFTLINE_TEST_DATABASE_URL", "postgresql+psycopg://postgres@127.0.0.1:5432/postgres")
PROJECT = Path(__file__).parents[3]
TOKEN = "sesame"


@pytest.fixture(scope="session")
def database_url() -> Iterator[str]:
    """A migrated database that is dropped afterwards. Without PostgreSQL this fails; it never skips."""
    name = f"driftline_api_{uuid4().hex[:12]}"
    dsn = SERVER.replace("+psycopg", "")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"create database {name}")
        url = make_url(SERVER).set(database=name).render_as_string(hide_password=False)
        migrate(url)
        yield url
        connection.execute(f"drop database {name} with (force)")


@pytest.fixture(scope="session")
def settings(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("service")
    fields: dict[str, Any] = {
        "database_url": database_url, "broker_url": f"filesystem://{folder}/broker", "data_dir": folder,
        "config_path": PROJECT / "driftline.toml", "assets_root": PROJECT, "admin_token": TOKEN,
        "allow_local_repositories": True, "public_url": "http://drift.example.org",
    }  # fmt: skip
    return Settings(**fields)


@pytest.fixture(scope="session")
def sessions(settings: Settings) -> Iterator[Sessions]:
    """To look at what was stored, and to store what other parts would."""
    engine = make_engine(settings.database_url.get_secret_value())
    yield make_sessions(engine)
    engine.dispose()


@pytest.fixture(scope="session")
def client(settings: Settings) -> Iterator[httpx.Client]:
    """A client that holds the admin token, against a server with every middleware."""
    with serving(settings) as opened:
        yield opened


@pytest.fixture
def client_without_database(settings: Settings) -> Iterator[httpx.Client]:
    nowhere = SecretStr("postgresql+psycopg://postgres@127.0.0.1:9/postgres")
    with serving(settings.model_copy(update={"database_url": nowhere})) as opened:
        yield opened


@pytest.fixture
def embedded_without_database(settings: Settings) -> Iterator[httpx.Client]:
    """As embedded: the database would share the service's disk."""
    nowhere = SecretStr("postgresql+psycopg://postgres@127.0.0.1:9/postgres")
    with serving(settings.model_copy(update={"database_url": nowhere, "embedded": True})) as opened:
        yield opened


@pytest.fixture(scope="session")
def private_client(settings: Settings) -> Iterator[httpx.Client]:
    """The same database, served in private, to a client that sends no token of its own accord."""
    with serving(settings.model_copy(update={"private": True})) as opened:
        del opened.headers["Authorization"]
        yield opened


@pytest.fixture(scope="session")
def serve() -> Callable[[Settings], AbstractContextManager[httpx.Client]]:
    """To serve with other settings."""
    return serving


@contextmanager
def serving(settings: Settings) -> Iterator[httpx.Client]:
    logs.configure(format="json", level="WARNING")
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as in ../conftest.py
    config = uvicorn.Config(create_app(settings), log_config=None, lifespan="on")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the application did not start"
        time.sleep(0.01)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    try:
        with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=20) as opened:
            yield opened
    finally:  # else a test that fails inside leaves a thread that nothing ends
        server.should_exit = True
        thread.join(10)
        listener.close()


KERNELS = PROJECT / "kernels" / "src" / "mamba2_varlen"


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """main: no kernels, kernels, docs. Branch `refactor` changes the torch backend, `triton` the triton backend."""
    made = start(tmp_path_factory.mktemp("git") / "kernels")
    commit(made, "Start", {"README": "nothing yet\n"})
    inside = Path("kernels/src/mamba2_varlen")
    shutil.copytree(KERNELS, made / inside, ignore=shutil.ignore_patterns("__pycache__"))
    commit(made, "Add kernels")
    commit(made, "Say more", {"README": "kernels\n"})
    for name, backend in (("refactor", "torch_backend"), ("triton", "triton_backend")):
        file = inside / backend / "__init__.py"
        branch(made, name, {str(file): (made / file).read_text() + "\n# changed\n"})
    git(made, "checkout", "-q", "main")
    return made


@pytest.fixture(scope="session")
def commits(repository: Path) -> dict[str, str]:
    """What the names mean."""
    return {name: git(repository, "rev-parse", name) for name in ("main", "main^", "main~2", "refactor", "triton")}
