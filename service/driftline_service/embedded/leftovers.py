"""Children that outlived a killed supervisor, found by pid and start time, never by name."""

import json
import os
import signal
import time
from pathlib import Path

import psutil  # type: ignore[import-untyped]

PATIENCE_SECONDS = 5.0
"""On Linux they die within milliseconds of their parent, by the parent-death signal."""


def remember(path: Path, pids: list[int]) -> None:
    """Write down who our children are."""
    new = path.with_name(f"{path.name}.new")
    new.write_text(json.dumps({str(pid): started for pid in pids if (started := started_at(pid))}), encoding="utf-8")
    new.replace(path)


def end(path: Path) -> list[int]:
    """Wait for the children written down there, then kill those still alive. Returns whom it killed."""
    try:
        known = {int(pid): str(started) for pid, started in json.loads(path.read_text(encoding="utf-8")).items()}
    except (OSError, ValueError, AttributeError):
        return []
    deadline = time.monotonic() + PATIENCE_SECONDS
    alive = _alive(known)
    while alive and time.monotonic() < deadline:
        time.sleep(0.1)
        alive = _alive(known)
    for pid in alive:
        os.kill(pid, signal.SIGKILL)
    path.unlink(missing_ok=True)
    return alive


def started_at(pid: int) -> str:
    """When the process started; empty if there is none. A reused pid has another."""
    try:
        process = psutil.Process(pid)
        return "" if process.status() == psutil.STATUS_ZOMBIE else f"{process.create_time():.2f}"
    except psutil.NoSuchProcess:
        return ""


def _alive(known: dict[int, str]) -> list[int]:
    return [pid for pid, started in known.items() if started_at(pid) == started]
