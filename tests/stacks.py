"""Whole stacks for tests: the embedded one, and the production processes on a given PostgreSQL and Redis."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
from driftline.cli.failure import CommandError
from driftline.cli.server import Server
from driftline_service.database.migrate import migrate

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_SECONDS = 240.0
"""A run of the example with few questions takes 90 s on two idle cores."""


@dataclass
class Embedded:
    """`driftline_service.embedded` on a data folder, in a process group of its own."""

    data_dir: Path
    process: "subprocess.Popen[bytes] | None" = None

    def start(self) -> Server:
        command = [sys.executable, "-P", "-m", "driftline_service.embedded", "--data-dir", str(self.data_dir)]
        self.process = subprocess.Popen([*command, "--port", "0", "--concurrency", "2"], cwd=ROOT)
        return wait_for(lambda: _answering(self.data_dir), "the embedded stack", self.process)

    def kill(self) -> None:
        """SIGKILL of the supervisor; its children die with it."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)


@contextmanager
def production(database_url: str, broker_url: str, folder: Path) -> Iterator[Server]:
    """Service, reconciler and worker as processes of their own, on a database of their own and on Redis."""
    token, name = secrets.token_hex(16), f"driftline_e2e_{secrets.token_hex(6)}"
    plain = database_url.replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f"create database {name}")
    own = _with_database(database_url, name)
    migrate(own)
    port = _free_port()
    url = f"http://127.0.0.1:{port}"
    inherited = {key: os.environ[key] for key in ("PATH", "HOME") if key in os.environ}
    service = inherited | {
        "DRIFTLINE_DATABASE_URL": own, "DRIFTLINE_BROKER_URL": broker_url, "DRIFTLINE_DATA_DIR": str(folder / "service"),
        "DRIFTLINE_CONFIG_PATH": str(ROOT / "driftline.toml"), "DRIFTLINE_ASSETS_ROOT": str(ROOT),
        "DRIFTLINE_DASHBOARDS_DIR": str(ROOT / "dashboards"), "DRIFTLINE_ADMIN_TOKEN": token, "DRIFTLINE_PUBLIC_URL": url,
        "DRIFTLINE_BIND_PORT": str(port), "DRIFTLINE_ALLOW_LOCAL_REPOSITORIES": "true",
    }  # fmt: skip
    worker = inherited | {
        "DRIFTLINE_WORKER_SERVICE_URL": url, "DRIFTLINE_WORKER_BROKER_URL": broker_url, "DRIFTLINE_WORKER_CONCURRENCY": "2",
        "DRIFTLINE_WORKER_DATA_DIR": str(folder / "worker"), "DRIFTLINE_WORKER_ALLOW_LOCAL_REPOSITORIES": "true",
    }  # fmt: skip
    parts = (("driftline_service", service), ("driftline_service.reconciler", service), ("driftline_worker", worker))
    processes = [subprocess.Popen([sys.executable, "-P", "-m", module], cwd=folder, env=env) for module, env in parts]
    server = Server(url, token)
    try:
        yield wait_for(lambda: _ready(server), "the production stack", processes[0])
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait(60)
        with psycopg.connect(plain, autocommit=True) as connection:
            connection.execute(f"drop database {name} with (force)")


def wait_for(look: Callable[[], Any], what: str, process: "subprocess.Popen[bytes] | None" = None) -> Any:
    """The first answer that is not None.

    Raises:
        AssertionError: if there is none in time, or the process ended.
    """
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        found = look()
        if found is not None:
            return found
        assert process is None or process.poll() is None, f"{what} ended with {process.returncode}"
        time.sleep(0.2)
    raise AssertionError(f"{what}: not within {PATIENCE_SECONDS:.0f} s")


def _answering(data_dir: Path) -> Server | None:
    try:
        pid = json.loads((data_dir / "server.json").read_text(encoding="utf-8"))["pid"]
        os.kill(pid, 0)
    except (OSError, ValueError, KeyError):
        return None
    from driftline.cli import server

    return _ready(server.find(data_dir, None, None))


def _ready(server: Server) -> Server | None:
    try:
        server.get("/readyz")
    except CommandError:
        return None
    return server


def _with_database(url: str, name: str) -> str:
    head, _, query = url.partition("?")
    return head.rsplit("/", 1)[0] + f"/{name}" + (f"?{query}" if query else "")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
