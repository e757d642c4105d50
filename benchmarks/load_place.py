"""What the load benchmarks share: a database of their own, a service process on it, and how a figure is told."""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import httpx
import psycopg
from driftline_service.database.migrate import migrate
from sqlalchemy.engine import make_url

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_SERVER = "postgresql+psycopg://postgres@127.0.0.1:5432/postgres"
START_SECONDS = 60.0
TOKEN = "sesame"  # noqa: S105 - of a service that lives for a minute


@dataclass(frozen=True, slots=True)
class Figure:
    """One measurement against what is wanted; both in `unit`."""

    what: str
    value: float
    wanted: float
    unit: str
    at_least: bool = False

    @property
    def reached(self) -> bool:
        return self.value >= self.wanted if self.at_least else self.value <= self.wanted

    def __str__(self) -> str:
        sign = "at least" if self.at_least else "at most"
        verdict = "reached" if self.reached else "MISSED"
        return f"{verdict:8} {self.what}: {self.value:.6g} {self.unit}, wanted {sign} {self.wanted:g} {self.unit}"


def tell(figures: Sequence[Figure]) -> None:
    """Print them with the machine's load; exits 1 if one was missed."""
    load = ", ".join(f"{part:.1f}" for part in os.getloadavg())
    print(f"{os.cpu_count()} cores, load average {load}")
    for figure in figures:
        print(figure, flush=True)
    if not all(figure.reached for figure in figures):
        raise SystemExit(1)


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that `share` of them do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, -(-len(ordered) * share // 1).__int__() - 1))]


def parser(text: str | None) -> argparse.ArgumentParser:
    """Options that every load benchmark has."""
    made = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--server", default=os.environ.get("DRIFTLINE_TEST_DATABASE_URL", DEFAULT_SERVER),
                      help="a PostgreSQL on which databases may be made; default %(default)s")  # fmt: skip
    return made


@contextmanager
def new_database(server: str) -> Iterator[str]:
    """The URL of a migrated database that goes with the block."""
    name = f"driftline_load_{uuid4().hex[:12]}"
    with admin(server) as connection:
        connection.execute(f"create database {name}")
    url = url_of(server, name)
    try:
        migrate(url)
        yield url
    finally:
        with admin(server) as connection:
            connection.execute(f"drop database {name} with (force)")


def url_of(server: str, database: str) -> str:
    return make_url(server).set(database=database).render_as_string(hide_password=False)


def admin(url: str) -> psycopg.Connection:
    """A connection of the driver's own, every statement its own transaction."""
    return psycopg.connect(url.replace("+psycopg", ""), autocommit=True)


@contextmanager
def service(database_url: str, **more: str) -> Iterator[httpx.Client]:
    """The real service in a process of its own; `more` are settings by name. The client holds the admin token."""
    with (
        tempfile.TemporaryDirectory(prefix="driftline-load-") as folder,
        socket.create_server(("127.0.0.1", 0), backlog=1024) as listener,
    ):
        told = {
            "database_url": database_url, "broker_url": f"filesystem://{folder}/broker", "data_dir": folder,
            "config_path": str(ROOT / "driftline.toml"), "assets_root": str(ROOT), "admin_token": TOKEN,
            "dashboards_dir": str(ROOT / "dashboards"), "listen_fd": str(listener.fileno()), "log_level": "ERROR",
        } | more  # fmt: skip
        environment = {**os.environ} | {f"DRIFTLINE_{name.upper()}": value for name, value in told.items()}
        command = [sys.executable, "-P", "-m", "driftline_service"]
        process = subprocess.Popen(command, env=environment, pass_fds=[listener.fileno()], cwd=folder)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        try:
            with httpx.Client(base_url=url, headers={"Authorization": f"Bearer {TOKEN}"}, timeout=60) as client:
                _wait(client, process)
                yield client
        finally:
            process.terminate()
            process.wait(30)


def _wait(client: httpx.Client, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            if client.get("/readyz").status_code == httpx.codes.OK:
                return
        except httpx.TransportError:
            time.sleep(0.1)
    raise SystemExit(f"the service was not ready within {START_SECONDS:.0f} s; its own words are above")
