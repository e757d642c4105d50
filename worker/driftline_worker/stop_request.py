"""A wish to end one attempt, from whichever thread has it first."""

import threading
from typing import Literal

Why = Literal["lease_gone", "stopped", "worker_stopped", "report_refused"]


class StopRequest:
    """The first wish counts; later ones change nothing."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._event = threading.Event()
        self.why: Why | None = None
        self.message = ""

    def ask(self, why: Why, message: str = "") -> None:
        with self._lock:
            if self.why is None:
                self.why, self.message = why, message
        self._event.set()

    def wait(self, seconds: float) -> bool:
        """Sleep until somebody asks, at most so long; whether somebody did."""
        return self._event.wait(seconds)
