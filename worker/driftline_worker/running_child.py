"""A child process from outside: its two pipes, how it ended, and how it is ended with all that it started."""

import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass

TAIL_BYTES = 16_384
"""A compiler's error or a traceback; what was printed before it is forgotten."""

GRACE_SECONDS = 3.0


@dataclass(frozen=True, slots=True)
class Exit:
    """Either an exit code or the number of a signal."""

    code: int
    signal: int

    def __str__(self) -> str:
        if self.signal == 0:
            return f"exit code {self.code}"
        with suppress(ValueError):
            return f"signal {signal.Signals(self.signal).name}"
        return f"signal {self.signal}"


class OutputTail:
    """The last bytes of stdout and stderr together."""

    def __init__(self) -> None:
        self._bytes = b""
        self.seen = 0

    def add(self, data: bytes) -> None:
        self.seen += len(data)
        self._bytes = (self._bytes + data)[-TAIL_BYTES:]

    def __str__(self) -> str:
        return self._bytes.decode("utf-8", "replace").replace("\0", "\ufffd").strip()


class RunningChild:
    """Owned by one thread. The process is a guard (guard.py), which ends only after all that it started."""

    def __init__(self, process: "subprocess.Popen[bytes]", channel: int) -> None:
        self.process = process
        self.channel = channel
        self.tail = OutputTail()
        assert process.stdout is not None  # noqa: S101 - sandbox.py asks for a pipe
        self.output = process.stdout.fileno()
        for descriptor in (self.channel, self.output):
            os.set_blocking(descriptor, False)

    @property
    def pid(self) -> int:
        return self.process.pid

    def exited(self) -> bool:
        return self.process.poll() is not None

    def exits_within(self, seconds: float) -> bool:
        """Wait for its end; whether it came."""
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(seconds)
        return self.exited()

    def exit(self) -> Exit:
        """How it ended; only after it did. bubblewrap and shells tell a signal as 128 + its number."""
        code = self.process.wait()
        if code < 0:
            return Exit(0, -code)
        return Exit(0, code - 128) if 128 < code < 128 + 65 else Exit(code, 0)

    def end(self) -> None:
        """Kill it and all its own, bury it, close the pipes. May be called again."""
        if not self.exited():
            self.process.terminate()
            self.exits_within(GRACE_SECONDS)
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self.process.wait()
        self._drain_output()
        self._close()

    def _drain_output(self) -> None:
        """What it said last is in the pipe still."""
        if self.output < 0:
            return
        with suppress(BlockingIOError, OSError):
            while data := os.read(self.output, 65_536):
                self.tail.add(data)

    def _close(self) -> None:
        if self.channel >= 0:
            os.close(self.channel)
            self.channel = self.output = -1
            if self.process.stdout is not None:
                self.process.stdout.close()
