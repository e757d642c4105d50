"""What this process served: requests by route, and samples taken in. Each replica reports its own."""

import time

from prometheus_client import CollectorRegistry, Counter, Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)
"""Seconds. A page should take less than the fifth; an event stream stays open and is left out."""

STREAMS = ("/events",)


class Served:
    """Counters of one process in a registry of its own, so that two applications in one process do not clash."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Histogram(
            "driftline_request_seconds", "Time to answer, by route", ["method", "route", "status"], buckets=BUCKETS,
            registry=self.registry,
        )  # fmt: skip
        self.lines = Counter("driftline_worker_lines", "Lines that workers reported", registry=self.registry)
        self.samples = Counter("driftline_samples", "Answers that workers reported", registry=self.registry)


class RequestTimes:
    """ASGI middleware: times every answer under its route's template, never under the path a stranger made up."""

    def __init__(self, app: ASGIApp, served: Served) -> None:
        self._app = app
        self._served = served

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, noting)
        finally:
            route = getattr(scope.get("route"), "path", "none")
            if not route.endswith(STREAMS):
                labels = (scope["method"] if route != "none" else "any", route, str(status))
                self._served.requests.labels(*labels).observe(time.perf_counter() - started)
