"""The attempts that run in this process, so that a worker that is stopped can give all of them up."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from driftline_worker.stop_request import StopRequest


class RunningAttempts:
    """Shared by the threads that do jobs and the one that hears signals."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stops: list[StopRequest] = []
        self._stopped = False

    @contextmanager
    def listed(self, stop: StopRequest) -> Iterator[None]:
        """Listed while the block runs; one that comes after stop_all is stopped at once."""
        with self._lock:
            self._stops.append(stop)
            if self._stopped:
                stop.ask("worker_stopped")
        try:
            yield
        finally:
            with self._lock:
                self._stops.remove(stop)

    def stop_all(self) -> None:
        with self._lock:
            self._stopped = True
            for stop in self._stops:
                stop.ask("worker_stopped")
