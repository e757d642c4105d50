"""Keeps one attempt's lease alive, and hears when it is over."""

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

from driftline.contracts.worker_api import Directive

from driftline_worker.client import Gone, Refused, Unreachable
from driftline_worker.stop_request import StopRequest

BEATS_PER_LEASE = 3
"""Two may be lost on the way."""

LONGEST_PAUSE_SECONDS = 5.0
"""A child that sends nothing is stopped within this time when its run is cancelled."""


class Heartbeat:
    """Beats while its block runs."""

    def __init__(self, beat: Callable[[], Directive], stop: StopRequest, *, lease_seconds: float) -> None:
        self._beat = beat
        self._stop = stop
        self._pause = min(lease_seconds / BEATS_PER_LEASE, LONGEST_PAUSE_SECONDS)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()  # not joined: a beat that waits for the service must not hold the job up

    def _run(self) -> None:
        while not self._over.wait(self._pause):
            try:
                directive = self._beat()
            except (Gone, Refused, Unreachable) as error:
                self._stop.ask("lease_gone", str(error))
                return
            self._stop.follow(directive)
            if self._stop.why == "stopped":
                return
