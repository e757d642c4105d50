"""Sends a child's lines in numbered batches, on a thread of its own: a slow service must not blind a child's watch."""

import threading
import time
from typing import Protocol

from driftline.contracts.channel import Progress
from driftline.contracts.worker_api import Directive, LineBatch, ReportedLine

from driftline_worker.client import Gone, Refused, Unreachable
from driftline_worker.stop_request import StopRequest

BATCH_SECONDS = 0.5
"""What a person who follows a run feels as live. A new phase is told at once, so that its time is known to the hundredth."""

BATCH_LINES = 200
BATCH_BYTES = 4 << 20
"""A request body well below the service's cap."""

MOST_WAITING = 4000
"""Lines; beyond them the child has to wait on its pipe."""


class Send(Protocol):
    def __call__(self, batch: LineBatch) -> Directive: ...


class Reporter:
    """A sink for one attempt. `close` sends what is left; then `batches` tells how many went."""

    def __init__(self, send: Send, stop: StopRequest) -> None:
        self._send = send
        self._stop = stop
        self._waiting: list[tuple[ReportedLine, int]] = []
        self._phase = ""
        self._due = False
        self._changed = threading.Condition()
        self._closing = False
        self.batches = 0
        self._thread = threading.Thread(target=self._run, name="reporter", daemon=True)
        self._thread.start()

    def put(self, line: ReportedLine, size: int) -> None:
        """Take a line. Of progress lines in a row only the last is kept."""
        with self._changed:
            if self._waiting and isinstance(line, Progress) and _supersedes(line, self._waiting[-1][0]):
                self._waiting.pop()
            self._waiting.append((line, size))
            if isinstance(line, Progress) and line.phase != self._phase:
                self._phase, self._due = line.phase, True
            if self._due or len(self._waiting) >= BATCH_LINES:
                self._due = True
                self._changed.notify()

    def full(self) -> bool:
        return len(self._waiting) >= MOST_WAITING

    def close(self) -> None:
        """Send what waits, unless the attempt is over anyway. Returns when all is sent or given up."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while (lines := self._next()) is not None:
            if not lines or not self._deliver(lines):
                continue
            self.batches += 1

    def _next(self) -> list[ReportedLine] | None:
        """A batch, [] if time ran out without lines, None at the end."""
        with self._changed:
            deadline = time.monotonic() + BATCH_SECONDS
            while not self._closing and not self._due and (left := deadline - time.monotonic()) > 0:
                self._changed.wait(left)
            if self._closing and not self._waiting:
                return None
            return self._taken()

    def _taken(self) -> list[ReportedLine]:
        lines: list[ReportedLine] = []
        size = 0
        for line, length in self._waiting[:BATCH_LINES]:
            if lines and size + length > BATCH_BYTES:
                break
            lines.append(line)
            size += length
        del self._waiting[: len(lines)]
        self._due = len(self._waiting) >= BATCH_LINES
        return lines

    def _deliver(self, lines: list[ReportedLine]) -> bool:
        if self._stop.why in ("lease_gone", "stopped", "report_refused"):
            return False
        try:
            directive = self._send(LineBatch(sequence=self.batches, lines=lines))
        except Gone as error:
            self._stop.ask("lease_gone", str(error))
        except Unreachable as error:
            self._stop.ask("lease_gone", str(error))
        except Refused as error:
            self._stop.ask("report_refused", str(error))
        else:
            self._stop.follow(directive)
            return True
        return False


def _supersedes(new: Progress, old: ReportedLine) -> bool:
    return isinstance(old, Progress) and old.phase == new.phase
