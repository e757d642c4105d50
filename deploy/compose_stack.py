"""The processes of docker-compose.yml without Docker: the same commands and variables on this machine's own PostgreSQL
and Redis. `make stack` runs them; the end-to-end test does too, so a variable that the code does not have shows.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parent))

from make_secrets import make

ROOT = Path(__file__).resolve().parent.parent
COMPOSE = ROOT / "docker-compose.yml"
SERVERS = ("service", "reconciler", "worker")
"""What runs until it is told to stop; `migrate` runs before them and ends."""

INHERITED = ("PATH", "HOME", "LANG")
STOP_SECONDS = 60


@dataclass(frozen=True, slots=True)
class Place:
    """Where the containers' paths and addresses are on this machine."""

    folder: Path
    secrets: Path
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def here(self, service: str, text: str) -> str:
        """`text` with what only containers know replaced."""
        moves = (
            ("/tmp/", f"{self.folder}/"),  # noqa: S108 - the container's; first, since the others may lead there
            ("/run/secrets", str(self.secrets)), ("/var/lib/driftline", str(self.folder / _volume(service))),
            ("/app/.venv-eval", str(ROOT / ".venv-eval")), ("http://service:8642", self.url),
        )  # fmt: skip
        for inside, outside in moves:
            text = text.replace(inside, outside)
        if text == "/app" or text.startswith("/app/"):
            return str(ROOT) + text.removeprefix("/app")
        whole = {"8642": str(self.port), "0.0.0.0": "127.0.0.1"}  # noqa: S104 - replaced, not bound
        return whole.get(text, text)


@dataclass(frozen=True, slots=True)
class Process:
    """One service's command line and whole environment."""

    name: str
    command: list[str]
    environment: dict[str, str]


def read_compose(environment: Mapping[str, str] | None = None) -> dict[str, Any]:
    """docker-compose.yml with `${NAME:-default}` filled in from `environment`; `$$` is a dollar sign."""
    given = environment or {}

    def fill(match: re.Match[str]) -> str:
        return "$" if match[0] == "$$" else given.get(match["name"]) or match["default"] or ""

    text = re.sub(r"\$\$|\$\{(?P<name>[A-Z_]+)(?::-(?P<default>[^}]*))?\}", fill, COMPOSE.read_text(encoding="utf-8"))
    read: dict[str, Any] = yaml.safe_load(text)
    return read


def process(compose: Mapping[str, Any], name: str, place: Place, *, extra: Mapping[str, str] | None = None) -> Process:
    """The service `name` as a process of this machine. `extra` adds variables that only a test wants."""
    declared: dict[str, Any] = compose["services"][name]
    environment = {key: os.environ[key] for key in INHERITED if key in os.environ} | {"PYTHONUNBUFFERED": "1"}
    environment |= {key: place.here(name, str(value)) for key, value in declared["environment"].items()}
    if "DRIFTLINE_PUBLIC_URL" in environment:
        environment["DRIFTLINE_PUBLIC_URL"] = place.url
    python, *arguments = declared["command"]
    if python != "python":
        raise ValueError(f"{COMPOSE.name}: the command of {name} starts with {python}, not with python")
    return Process(name, [sys.executable, "-P", *arguments], environment | dict(extra or {}))


def start(one: Process, folder: Path) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(one.command, cwd=folder, env=one.environment)


def migrate(compose: Mapping[str, Any], place: Place, *, extra: Mapping[str, str] | None = None) -> None:
    """Bring the database to the newest schema; `extra` as for `process`.

    Raises:
        subprocess.CalledProcessError: if that fails; its reason is on standard error.
    """
    one = process(compose, "migrate", place, extra=extra)
    subprocess.run(one.command, cwd=place.folder, env=one.environment, check=True)


def stop(processes: list["subprocess.Popen[bytes]"]) -> None:
    for running in processes:
        running.terminate()
    for running in processes:
        running.wait(STOP_SECONDS)


def _volume(service: str) -> str:
    return "worker" if service == "worker" else "service"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=ROOT / ".driftline-stack", help="data of service and worker")
    parser.add_argument("--port", type=int, default=8642)
    parser.add_argument(
        "--database-url", required=True, help="an empty or a Driftline database, postgresql+psycopg://…"
    )
    parser.add_argument("--broker-url", default="redis://127.0.0.1:6379/0")
    options = parser.parse_args()
    place = Place(options.folder.absolute(), options.folder.absolute() / "secrets", options.port)
    place.secrets.mkdir(parents=True, exist_ok=True)
    for name, value in (("database_url", options.database_url), ("broker_url", options.broker_url)):
        (place.secrets / name).unlink(missing_ok=True)
        (place.secrets / name).write_text(value, encoding="ascii")
    make(place.secrets)
    compose = read_compose(os.environ)
    migrate(compose, place)
    running = [start(process(compose, name, place), place.folder) for name in SERVERS]
    print(f"Driftline is at {place.url}; the admin token is in {place.secrets / 'admin_token'}; Ctrl-C stops it")
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        while all(one.poll() is None for one in running):
            time.sleep(0.5)
        return 1
    except KeyboardInterrupt:
        return 0
    finally:
        stop(running)


if __name__ == "__main__":
    sys.exit(main())
