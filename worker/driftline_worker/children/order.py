"""Lines of pieces that several processes do at once, sent on in the pieces' own order: a report reads the same each time."""

import threading
from typing import Any

from driftline_worker.children.line_channel import Channel


class Order:
    """One line a piece, numbered from 0. Safe to share between threads."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self._lock = threading.Lock()
        self._waiting: dict[int, tuple[bytes, str]] = {}
        self._next = 0

    def put(self, index: int, raw: bytes, line_type: str) -> None:
        """Send the piece's line once those of all pieces before it are sent."""
        with self._lock:
            self._waiting[index] = (raw, line_type)
            while self._next in self._waiting:
                self.channel.pass_on(*self._waiting.pop(self._next))
                self._next += 1

    def progress(self, line: dict[str, Any]) -> None:
        """A process knows how far it is; what is told is how many pieces are done by all."""
        with self._lock:
            self.channel.send(
                "progress", phase=line["phase"], total=line["total"],
                done=self.channel.lines if line["done"] else 0,
            )  # fmt: skip

    def finish(self) -> None:
        """Send what waits for a line that never came."""
        with self._lock:
            for _, waiting in sorted(self._waiting.items()):
                self.channel.pass_on(*waiting)
            self._waiting.clear()
