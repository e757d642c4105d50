"""The whole embedded stack as its own process: start, use, kill, start again, refuse, stop."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import psutil  # type: ignore[import-untyped]
import pytest

START_SECONDS = 60.0


def _command(folder: Path, *more: str) -> list[str]:
    base = [sys.executable, "-P", "-m", "driftline_service.embedded", "--data-dir", str(folder), "--no-worker"]
    return [*base, *(more or ("--port", "0"))]


@contextmanager
def _stack(folder: Path) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A running stack and its URL."""
    process = subprocess.Popen(_command(folder), stderr=subprocess.PIPE, text=True)
    try:
        yield process, _url(process, folder)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        assert process.stderr is not None
        process.stderr.close()


def _url(process: "subprocess.Popen[str]", folder: Path) -> str:
    place = folder / "server.json"
    deadline = time.monotonic() + START_SECONDS
    while True:
        assert process.poll() is None, process.stderr.read() if process.stderr else ""
        assert time.monotonic() < deadline
        if place.exists():
            server = json.loads(place.read_text())
            if server["pid"] == process.pid:
                return str(server["url"])
        time.sleep(0.05)


def _descendants(process: "subprocess.Popen[str]") -> "list[psutil.Process]":
    found: list[psutil.Process] = psutil.Process(process.pid).children(recursive=True)
    return found


def _wait_until(condition: "list[psutil.Process]") -> None:
    gone, alive = psutil.wait_procs(condition, timeout=15)
    assert not alive, f"{len(gone)} ended, these live on: {[p.cmdline() for p in alive]}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("driftline") / "data"


def test_it_serves_and_tells_where(folder: Path) -> None:
    with _stack(folder) as (process, url):
        assert httpx.get(f"{url}/readyz").json() == {"status": "ready"}
        server = json.loads((folder / "server.json").read_text())
        token_file = Path(server["token_file"])
        assert token_file.stat().st_mode & 0o777 == 0o600
        headers = {"Authorization": f"Bearer {token_file.read_text()}"}
        refused = httpx.post(
            f"{url}/api/v1/runs", json={"repo": str(folder), "head": "x", "lanes": ["none"]}, headers=headers
        )
        assert refused.json()["reason"] == "unknown_lane"
        children = _descendants(process)
        assert {p.cmdline()[3] for p in children if "-m" in p.cmdline()} >= {
            "driftline_service",
            "driftline_service.reconciler",
        }
    assert process.returncode == 0
    _wait_until(children)
    assert not (folder / "server.json").exists()


def test_a_second_server_on_the_folder_is_refused_and_harmless(folder: Path) -> None:
    with _stack(folder) as (process, url):
        second = subprocess.run(_command(folder), capture_output=True, text=True, timeout=30, check=False)
        assert second.returncode == 1
        assert f"is in use by pid {process.pid} at {url}" in second.stderr
        assert second.stderr.count("\n") == 1
        assert httpx.get(f"{url}/readyz").status_code == 200


def test_a_port_in_use_is_told(folder: Path, tmp_path: Path) -> None:
    with _stack(folder) as (_, url):
        port = url.rsplit(":", 1)[1]
        other = subprocess.run(
            _command(tmp_path / "b", "--port", port), capture_output=True, text=True, timeout=30, check=False
        )
    assert other.returncode == 1
    assert f"port {port} on 127.0.0.1: Address already in use; choose another with --port" in other.stderr


def test_a_child_that_dies_is_started_again(folder: Path) -> None:
    with _stack(folder) as (process, url):
        service = next(p for p in _descendants(process) if p.cmdline()[-1] == "driftline_service")
        database = next(p for p in _descendants(process) if "postgres" in p.cmdline()[0])
        for victim, name in ((service, "service"), (database, "postgres")):
            victim.kill()
            assert process.stderr is not None
            while name not in (line := process.stderr.readline()) or "starting it again" not in line:
                assert line, "the supervisor ended"
            assert f"{name} ended with -9; starting it again in 0.5 s" in line
            deadline = time.monotonic() + START_SECONDS
            while not _ready(url):
                assert time.monotonic() < deadline
                time.sleep(0.1)


def test_after_sigkill_nothing_lives_on_and_a_restart_finds_everything(folder: Path) -> None:
    process = subprocess.Popen(_command(folder), stderr=subprocess.DEVNULL, text=True)
    _url(process, folder)
    token = (folder / "admin-token").read_text()
    children = _descendants(process)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    with _stack(folder) as (_, url):
        assert httpx.get(f"{url}/readyz").status_code == 200
        assert (folder / "admin-token").read_text() == token
        _wait_until(children)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (("--config", "/nowhere.toml"), "no lanes: /nowhere.toml does not exist"),
        (("--data-dir", "/proc/driftline"), "data folder /proc/driftline"),
        (
            ("--eval-python", "/nowhere/python"),
            "no evaluation environment: /nowhere/python does not exist; run `make envs`",
        ),
    ],
)
def test_what_cannot_be_served_is_one_line_with_a_remedy(more: tuple[str, ...], words: str, tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-P",
        "-m",
        "driftline_service.embedded",
        "--data-dir",
        str(tmp_path),
        "--port",
        "0",
        *more,
    ]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert answer.returncode == 1
    assert words in answer.stderr
    assert answer.stderr.count("\n") == 1


def _ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=5).status_code == 200
    except httpx.TransportError:
        return False
