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

import compose_stack
import psutil
import psycopg
from driftline.cli.failure import CommandError
from driftline.cli.server import Server, find

ROOT = Path(__file__).resolve().parent.parent
LOCAL = "ALLOW_LOCAL_REPOSITORIES"
EXTRA = {
    "service": {f"DRIFTLINE_{LOCAL}": "true"}, "reconciler": {f"DRIFTLINE_{LOCAL}": "true"},
    "worker": {f"DRIFTLINE_WORKER_{LOCAL}": "true", "DRIFTLINE_WORKER_CONCURRENCY": "2", "DRIFTLINE_WORKER_SANDBOX": "auto"},
}  # fmt: skip
"""What a test's stack has besides: a repository on this disk, two jobs at once, and no demand for bubblewrap."""

LOOK_SECONDS = 1.0
"""Between two looks at a stack: a look costs its service tens of ms of the cores that the run wants."""

PATIENCE_SECONDS = 900.0
"""After which a run counts as hanging: on two idle cores the example with few questions takes a tenth."""


@dataclass
class Embedded:
    """`driftline_service.embedded` on a data folder, in a process group of its own."""

    data_dir: Path
    process: "subprocess.Popen[bytes] | None" = None

    @property
    def server(self) -> Server:
        """As the command line finds it."""
        return find(self.data_dir, None, None)

    def start(self, concurrency: int = 2) -> Server:
        command = [sys.executable, "-P", "-m", "driftline_service.embedded", "--data-dir", str(self.data_dir)]
        self.process = subprocess.Popen([*command, "--port", "0", "--concurrency", str(concurrency)], cwd=ROOT)
        return wait_for(lambda: _answering(self.data_dir), "the embedded stack", self.process)

    def kill(self) -> None:
        """SIGKILL of the supervisor; its children die with it."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(10)

    def kill_part(self, name: str) -> None:
        """SIGKILL of `postgres`, `service`, `reconciler` or `worker`; the supervisor starts it again."""
        assert self.process is not None
        children = {child: child.cmdline() for child in psutil.Process(self.process.pid).children()}
        (part,) = [child for child, command in children.items() if _part_of(command) == name]
        part.kill()

    def database(self) -> "psycopg.Connection[Any]":
        """A connection of its own to the stack's database, each statement a transaction."""
        sockets = next(self.data_dir.rglob("postmaster.pid")).read_text(encoding="utf-8").splitlines()[4]
        return psycopg.connect(host=sockets, user="postgres", dbname="postgres", autocommit=True)

    def stop(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(60)


def _part_of(command: list[str]) -> str:
    if command[0].endswith("/postgres"):
        return "postgres"
    return {"driftline_service": "service", "driftline_worker": "worker"}.get(
        command[-1], command[-1].rpartition(".")[2]
    )


@contextmanager
def production(database_url: str, broker_url: str, folder: Path) -> Iterator[Server]:
    """The processes of docker-compose.yml, with its commands and variables but for the lanes, on a database of their own and on
    Redis."""
    token, name = secrets.token_hex(16), f"driftline_e2e_{secrets.token_hex(6)}"
    plain = database_url.replace("postgresql+psycopg://", "postgresql://")
    with psycopg.connect(plain, autocommit=True) as connection:
        connection.execute(f"create database {name}")
    own = _with_database(database_url, name)
    place = place_of(own, broker_url, token, folder)
    compose = compose_stack.read_compose()
    compose_stack.migrate(compose, place)
    config = {"DRIFTLINE_CONFIG_PATH": str(_compiling_once(folder))}
    extra = EXTRA | {"service": EXTRA["service"] | config}
    processes = [
        compose_stack.start(compose_stack.process(compose, service, place, extra=extra[service]), folder)
        for service in compose_stack.SERVERS
    ]
    server = Server(place.url, token)
    try:
        yield wait_for(lambda: _ready(server), "the production stack", processes[0])
    finally:
        compose_stack.stop(processes)
        with psycopg.connect(plain, autocommit=True) as connection:
            connection.execute(f"drop database {name} with (force)")


def _compiling_once(folder: Path) -> Path:
    """The project's lanes, with kernels compiled for one architecture under one release of Triton: the embedded stack compiles
    all four sets, and each costs a core ten seconds."""
    own, _, rest = (ROOT / "driftline.toml").read_text(encoding="utf-8").partition('[tritons."3.9"]\n')
    settings = rest.partition("\n\n")[2]
    assert own.endswith('version = "3.6.0"\n\n') and settings, "driftline.toml has other releases of Triton now"
    path = folder / "driftline.toml"
    path.write_text(f"{own.rstrip()}\narchitectures = [90]\n\n{settings}", encoding="utf-8")
    return path


def place_of(database_url: str, broker_url: str, token: str, folder: Path) -> compose_stack.Place:
    """The secrets that docker-compose.yml mounts, in a folder of the test's own."""
    secret_files = folder / "secrets"
    secret_files.mkdir(parents=True)
    for name, value in (("database_url", database_url), ("broker_url", broker_url), ("admin_token", token)):
        (secret_files / name).write_text(value, encoding="ascii")
    return compose_stack.Place(folder, secret_files, free_port())


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
        time.sleep(LOOK_SECONDS)
    raise AssertionError(f"{what}: not within {PATIENCE_SECONDS:.0f} s")


def _answering(data_dir: Path) -> Server | None:
    try:
        pid = json.loads((data_dir / "server.json").read_text(encoding="utf-8"))["pid"]
        os.kill(pid, 0)
    except (OSError, ValueError, KeyError):
        return None
    return _ready(find(data_dir, None, None))


def _ready(server: Server) -> Server | None:
    try:
        server.get("/readyz")
    except CommandError:
        return None
    return server


def _with_database(url: str, name: str) -> str:
    head, _, query = url.partition("?")
    return head.rsplit("/", 1)[0] + f"/{name}" + (f"?{query}" if query else "")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
