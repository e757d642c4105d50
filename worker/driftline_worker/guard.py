"""A program between worker and child: sets limits, dies with the worker, and leaves no process behind.

Run by path as `python -I -S guard.py LIMITS PARENT -- COMMAND`, so that nothing between fork and exec happens in the
worker's own many-threaded process. LIMITS is JSON, PARENT the worker's process id. It stays above the command, ends as
the command did, and only when all that the command started is gone. SIGTERM ends everything at once.
Standard library only; nothing of the worker is imported.
"""

import ctypes
import json
import os
import resource
import signal
import sys
from pathlib import Path
from typing import NoReturn

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
"""prctl(2). A subreaper becomes the parent of every orphan below it, so that none can hide."""

CPU_GRACE_SECONDS = 5
"""Between SIGXCPU, which names its reason, and SIGKILL, which does not."""

MOST_KILLABLE = "1000"
"""oom_score_adj: if the kernel runs out of memory it shall take a child, not the worker or the database."""


def main(arguments: list[str]) -> NoReturn:
    limits, parent, _, *command = arguments
    _die_with_parent(int(parent), signal.SIGTERM)
    _limit(json.loads(limits))
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    signal.signal(signal.SIGTERM, lambda *_: _stop(0, signal.SIGKILL))
    child = _spawn(command)
    _let_go_of_pipes()
    _stop(*_ended(child))


def _die_with_parent(parent: int, number: int) -> None:
    _prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:  # it died before the kernel was asked
        os._exit(1)


def _limit(limits: dict[str, int]) -> None:
    cpu = limits["cpu_seconds"]
    for name, soft, hard in (
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_FSIZE, limits["file_bytes"], limits["file_bytes"]),
        (resource.RLIMIT_CPU, cpu, cpu + CPU_GRACE_SECONDS),
        (resource.RLIMIT_NOFILE, limits["open_files"], limits["open_files"]),
    ):
        allowed = resource.getrlimit(name)[1]
        if allowed != resource.RLIM_INFINITY:
            soft, hard = min(soft, allowed), min(hard, allowed)
        resource.setrlimit(name, (soft, hard))
    Path("/proc/self/oom_score_adj").write_text(MOST_KILLABLE, encoding="ascii")


def _spawn(command: list[str]) -> int:
    here = os.getpid()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        _die_with_parent(here, signal.SIGKILL)
        os.setsid()
        os.execv(command[0], command)  # noqa: S606 - an argument list, no shell
    return child


def _let_go_of_pipes() -> None:
    """The worker sees the end of a pipe when the last writer is gone, so this process must not be one."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.closerange(3, resource.getrlimit(resource.RLIMIT_NOFILE)[0])


def _ended(child: int) -> tuple[int, int]:
    """(exit code, signal) of the command; orphans are buried on the way."""
    while True:
        pid, status = os.wait()
        if pid == child:
            return (0, os.WTERMSIG(status)) if os.WIFSIGNALED(status) else (os.WEXITSTATUS(status), 0)


def _stop(code: int, number: int) -> NoReturn:
    """Kill everything below, then end as the command did."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    while _kill_children():
        pass
    if number:
        signal.signal(number, signal.SIG_DFL) if number not in (signal.SIGKILL, signal.SIGSTOP) else None
        os.kill(os.getpid(), number)
    os._exit(code)


def _kill_children() -> bool:
    """Kill and bury every direct child; their own children become ours. False when there is none."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and _parent_of(entry) == os.getpid():
            try:
                os.kill(int(entry.name), signal.SIGKILL)
            except ProcessLookupError:
                continue
    try:
        os.wait()
    except ChildProcessError:
        return False
    return True


def _parent_of(entry: Path) -> int:
    try:
        return int((entry / "stat").read_text(encoding="ascii", errors="replace").rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return -1


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


if __name__ == "__main__":
    main(sys.argv[1:])
