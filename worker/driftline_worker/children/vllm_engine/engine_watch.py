"""Notices that a process of the engine is gone. vLLM's own client may wait for its answer for ever: seen with 0.32, whose
engine core was killed in the middle of a step."""

import multiprocessing
import os
import threading
from collections.abc import Callable
from pathlib import Path

TITLE = "VLLM::"
"""What vLLM calls its processes, so that they can be told from Python's own helpers; since 0.10.1."""

NAMES = ("EngineCore", "VllmWorker")
"""What it calls them inside the process that starts them, in releases that give no title too: 0.10.0 is one."""

LOOK_SECONDS = 0.5
GRACE_SECONDS = 5.0
"""An engine that dies of an error says so to its client, which then tells it better than we can."""

PROC = Path("/proc")


def engine_processes(root: int, proc: Path = PROC) -> frozenset[int]:
    """The engine's processes below `root`; none where the engine lives in the same process."""
    parents = {pid: parent for pid in _pids(proc) if (parent := _parent_of(pid, proc)) is not None}
    return frozenset(pid for pid in parents if _is_below(pid, root, parents) and _title(pid, proc).startswith(TITLE))


def started_engines() -> frozenset[int]:
    """The engine's processes that this process started itself, by the name it gave them."""
    started = multiprocessing.active_children()
    return frozenset(one.pid for one in started if one.pid is not None and one.name.startswith(NAMES))


class EngineWatch:
    """Calls `gone` once, from a thread of its own, if one of `pids` ends before `stop`."""

    def __init__(self, pids: frozenset[int], gone: Callable[[], None], *, grace_seconds: float = GRACE_SECONDS) -> None:
        self._pids, self._gone, self._grace = pids, gone, grace_seconds
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="engine-watch", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """The engine may end now."""
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(LOOK_SECONDS):
            if not all(map(_runs, self._pids)):
                if not self._stopped.wait(self._grace):
                    self._gone()
                return


def _pids(proc: Path) -> list[int]:
    return [int(entry.name) for entry in proc.iterdir() if entry.name.isdigit()]


def _parent_of(pid: int, proc: Path) -> int | None:
    fields = _stat(pid, proc)
    return None if fields is None else int(fields[1])


def _runs(pid: int) -> bool:
    """A zombie has ended, whether or not its parent has taken notice."""
    fields = _stat(pid, PROC)
    return fields is not None and fields[0] != "Z"


def _stat(pid: int, proc: Path) -> list[str] | None:
    """State, parent and what follows; None of a process that is gone."""
    try:
        return (proc / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None


def _title(pid: int, proc: Path) -> str:
    try:
        return os.fsdecode((proc / str(pid) / "cmdline").read_bytes())
    except OSError:
        return ""


def _is_below(pid: int, root: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        pid = parents[pid]
        if pid == root:
            return True
    return False
