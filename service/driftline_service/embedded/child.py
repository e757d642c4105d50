"""One supervised child process: start, stop, restart with back-off. What a child is for is not known here."""

import os
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from driftline_service.embedded.death import dies_with_parent

FIRST_PAUSE_SECONDS = 0.5
LONGEST_PAUSE_SECONDS = 30.0
CALM_SECONDS = 60.0
"""A child that lived so long starts over with the shortest pause."""

LARGEST_LOG_BYTES = 16 << 20
TAIL_BYTES = 4096

TELLING = ("PANIC", "FATAL", "Error")
"""PostgreSQL says why it ends some lines before it ends; a Python program in its last line."""


@dataclass(frozen=True, slots=True)
class Program:
    """What to run. The environment is complete: nothing is inherited."""

    name: str
    arguments: tuple[str, ...]
    environment: dict[str, str]
    folder: Path
    log: Path
    stop_signal: signal.Signals = signal.SIGTERM
    death_signal: signal.Signals = signal.SIGKILL
    """what it gets if the supervisor dies: nothing waits for it then"""
    grace_seconds: float = 10.0
    user: str | None = None
    passed_fds: tuple[int, ...] = ()


@dataclass(slots=True)
class Child:
    """A program that is to be kept running."""

    program: Program
    process: "subprocess.Popen[bytes] | None" = None
    started_at: float = 0.0
    restarts: int = 0
    next_start: float = 0.0
    _pause: float = field(default=FIRST_PAUSE_SECONDS)

    def start(self) -> None:
        """Fork from the calling thread, which must be the main one (death.py says why)."""
        program = self.program
        _cut(program.log)
        with program.log.open("ab") as log:
            self.process = subprocess.Popen(
                program.arguments, env=program.environment, cwd=program.folder, user=program.user,
                group=program.user, extra_groups=[] if program.user else None,
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                pass_fds=program.passed_fds, preexec_fn=dies_with_parent(program.death_signal),
            )  # fmt: skip
        self.started_at = time.monotonic()

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def plan_restart(self) -> float:
        """Seconds until the next try: doubled at each death, short again after a calm life."""
        if time.monotonic() - self.started_at > CALM_SECONDS:
            self._pause = FIRST_PAUSE_SECONDS
        pause, self._pause = self._pause, min(2 * self._pause, LONGEST_PAUSE_SECONDS)
        self.restarts += 1
        self.next_start = time.monotonic() + pause
        return pause

    def stop(self) -> None:
        """Ask, wait, then kill what is left of its process group."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(self.program.stop_signal)
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(self.program.grace_seconds)
        kill_group(self.process.pid)
        self.process.wait()

    def last_words(self) -> str:
        """The last line of its log that tells what is wrong, else the last."""
        try:
            with self.program.log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - TAIL_BYTES))
                lines = [line.strip() for line in log.read().decode("utf-8", "replace").splitlines() if line.strip()]
        except OSError:
            return ""
        telling = [line for line in lines if any(word in line for word in TELLING)]
        return (telling or lines or [""])[-1][:300]


def kill_group(pid: int) -> None:
    try:
        os.killpg(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _cut(log: Path) -> None:
    if log.exists() and log.stat().st_size > LARGEST_LOG_BYTES:
        log.replace(log.with_name(f"{log.name}.old"))
