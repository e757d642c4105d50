"""Everything this process and its engine's processes print: passed on, its end kept, the engine's start read.

vLLM's engine core is a process of its own, whose banner and errors come on the inherited descriptors and nowhere else.
"""

import os
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from .banner import Banner, one_banner
from .log_errors import LogError, classify

KEPT_LINES = 2000
"""An engine's traceback with those of its workers takes a few hundred."""

LINE_BYTES = 1 << 16
"""A longer line is cut: a configuration takes some thousand bytes."""

SETTLING_SECONDS = 2.0
"""What a process wrote before it died is in the pipe; reading it takes milliseconds."""


class EngineLog:
    """The lines so far. `closed` to the banner once the engine is up: what prompts and answers make it say is no start."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._start: list[str] = []
        self._starting = True
        self._lock = threading.Lock()

    def add(self, line: str) -> None:
        with self._lock:
            self._lines.append(line)
            if self._starting and "Initializing a" in line:
                self._start.append(line)

    def started(self) -> Banner | None:
        """The engine is up: its banner, or None. Raises banner.BannersDiffer."""
        with self._lock:
            self._starting = False
            return one_banner(self._start)

    def error(self, raised: Exception) -> LogError | None:
        """What the log says of a failure that this process saw as `raised`."""
        with self._lock:
            return classify("\n".join([*self._lines, f"{type(raised).__name__}: {raised}"]))


@contextmanager
def read_output() -> Iterator[EngineLog]:
    """Read descriptors 1 and 2 of this process and of all it starts while the block runs; every byte goes on to 2."""
    log, own = EngineLog(), (os.dup(1), os.dup(2))
    reading, writing = os.pipe()
    for descriptor in (1, 2):
        os.dup2(writing, descriptor)
    os.close(writing)
    reader = threading.Thread(target=_pass_on, args=(reading, own[1], log), daemon=True)
    reader.start()
    try:
        yield log
    finally:
        for descriptor, before in zip((1, 2), own, strict=True):
            os.dup2(before, descriptor)
        reader.join(SETTLING_SECONDS)  # a surviving process may hold the pipe open, so its end is not waited for


def _pass_on(reading: int, own: int, log: EngineLog) -> None:
    rest = b""
    while data := os.read(reading, LINE_BYTES):
        os.write(own, data)
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            log.add(line[:LINE_BYTES].decode("utf-8", "replace"))
        rest = rest[-LINE_BYTES:]
    if rest:
        log.add(rest.decode("utf-8", "replace"))
