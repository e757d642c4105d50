"""A wish to end one attempt, or to ask no more in it, from whichever thread has it first."""

import threading
from contextlib import suppress
from pathlib import Path
from typing import Literal

from driftline.contracts.worker_api import Directive

Why = Literal["lease_gone", "stopped", "worker_stopped", "report_refused"]


class StopRequest:
    """The first wish counts; later ones change nothing. That enough was asked is no wish to end: the child ends itself."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._event = threading.Event()
        self.why: Why | None = None
        self.message = ""
        self._enough: int | None = None
        self._file: Path | None = None

    def follow(self, directive: Directive) -> None:
        """Do what the service answered."""
        if directive.action == "stop" and directive.after is None:
            self.ask("stopped", directive.reason)
        elif directive.after is not None:
            self._set(enough=directive.after)

    def tell_child(self, file: Path) -> None:
        """Where the child looks whether enough was asked; it may have been said already."""
        self._set(file=file)

    def _set(self, *, enough: int | None = None, file: Path | None = None) -> None:
        """Written beside and moved there: a child never reads half a number. A folder that is gone has no child."""
        with self._lock:
            if enough is not None and enough == self._enough:
                return
            self._enough, self._file = enough or self._enough, file or self._file
            if self._enough is None or self._file is None:
                return
            unfinished = self._file.with_suffix(".new")
            with suppress(FileNotFoundError):
                unfinished.write_text(str(self._enough), encoding="ascii")
                unfinished.replace(self._file)

    def ask(self, why: Why, message: str = "") -> None:
        with self._lock:
            if self.why is None:
                self.why, self.message = why, message
        self._event.set()

    def wait(self, seconds: float) -> bool:
        """Sleep until somebody asks, at most so long; whether somebody did."""
        return self._event.wait(seconds)
