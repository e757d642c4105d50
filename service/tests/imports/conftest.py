"""Reports as a person would send them: an evaluation with samples, and one of figures only."""

import socket
import time
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest
import uvicorn
from driftline_service import logs
from driftline_service.app import create_app
from driftline_service.database.tables import ImportKind
from driftline_service.imports.reported import NewImport, NewSample, NewScore
from driftline_service.imports.storing import Stored, store
from driftline_service.settings import Settings

PROJECT = Path(__file__).parents[3]
REPOSITORY = "https://example.org/kernels.git"
FILTERS = ("strict-match", "flexible-extract")


def digest(name: str, doc_id: int) -> str:
    """As the scripted worker's samples have it, so that the two pair."""
    return sha256(f"{name}{doc_id}".encode()).hexdigest()


def new_sample(doc_id: int, *, response: str = "so #### 42", right: float = 1.0) -> NewSample:
    return NewSample(
        doc_id=doc_id, question=f"question {doc_id}?", target="#### 42", doc_hash=digest("doc", doc_id),
        prompt_hash=digest("prompt", doc_id), target_hash=digest("target", doc_id), response=response,
        scores=dict.fromkeys(FILTERS, right), extracted=dict.fromkeys(FILTERS, "42"),
    )  # fmt: skip


def new_import(**changes: Any) -> NewImport:
    """Ten right answers of commit bbbb… on lane `canary V1`; `changes` replace fields."""
    samples = tuple(new_sample(doc_id) for doc_id in range(10))
    usual: dict[str, Any] = {
        "kind": ImportKind.SAMPLES, "content_hash": "c" * 64, "lane_name": "canary V1", "task": "gsm8k_canary",
        "commit_sha": "b" * 40, "repository": REPOSITORY, "reported_by": "Ada", "note": "by hand", "measured_at": None,
        "scores": tuple(NewScore("exact_match", name, 1.0, 0.0, 10) for name in FILTERS),
        "facts": {"task": "gsm8k_canary", "engine": "hf", "num_fewshot": "3"}, "details": {"task_version": "3.0"},
        "samples": lambda: iter(samples),
    }  # fmt: skip
    return NewImport(**(usual | changes))


@pytest.fixture
def reported(world: Any) -> Callable[..., Stored]:
    """Stores a report and commits."""

    def report(**changes: Any) -> Stored:
        with world.sessions.begin() as session:
            return store(session, new_import(**changes))

    return report


TOKEN = "sesame"


@pytest.fixture(scope="session")
def imports_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("imports")


@pytest.fixture(scope="session")
def server(core_url: str, imports_folder: Path) -> Iterator[httpx.Client]:
    """The whole application over the session's database, with an admin's client; archives may have 2 MiB."""
    fields: dict[str, Any] = {
        "database_url": core_url, "broker_url": f"filesystem://{imports_folder}/broker", "data_dir": imports_folder,
        "config_path": PROJECT / "driftline.toml", "assets_root": PROJECT, "dashboards_dir": PROJECT / "dashboards",
        "admin_token": TOKEN, "max_import_bytes": 2 << 20, "max_import_unpacked_bytes": 8 << 20,
    }  # fmt: skip
    logs.configure(format="json", level="WARNING")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # as in ../conftest.py
        served = uvicorn.Server(uvicorn.Config(create_app(Settings(**fields)), log_config=None, lifespan="on"))
        thread = Thread(target=served.run, kwargs={"sockets": [listener]})
        thread.start()
        while not served.started:
            assert thread.is_alive(), "the application did not start"
            time.sleep(0.01)
        url, headers = f"http://127.0.0.1:{listener.getsockname()[1]}", {"Authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=url, headers=headers, timeout=30) as client:
            yield client
        served.should_exit = True
        thread.join(10)


@pytest.fixture
def api(server: httpx.Client, world: Any) -> httpx.Client:
    """The same, on a database without rows."""
    return server
