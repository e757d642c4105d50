"""An HTTP proxy between workers and the service: counts reports, and lets each fault meet the report it is meant for."""

import http.client
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

AGAIN_AFTER = 3
"""Reports until one that comes late comes again."""


@dataclass(frozen=True, slots=True)
class Report:
    """A worker's request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def is_heartbeat(self) -> bool:
        return self.path.endswith("/heartbeat")

    @property
    def is_claim(self) -> bool:
        return self.path.endswith("/claim")


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    body: bytes


Meet = Callable[[int, Report, "Doorway"], "Answer | None"]
"""Given a report's number, it and the doorway: the answer that the worker gets; None cuts the connection."""


class Doorway:
    """Serves until closed. `meet` decides what becomes of each report; heartbeats pass."""

    def __init__(self, service_port: int) -> None:
        self.service_port = service_port
        self.count = 0
        self.meet: Meet | None = None
        self._late: list[tuple[int, Report]] = []
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def begin(self, meet: Meet) -> None:
        """Count anew."""
        with self._lock:
            self.count, self.meet, self._late = 0, meet, []

    def forward(self, report: Report) -> Answer | None:
        """What the service answers; None if it is away."""
        connection = http.client.HTTPConnection("127.0.0.1", self.service_port, timeout=60)
        try:
            connection.request("POST", report.path, report.body, report.headers)
            response = connection.getresponse()
            return Answer(response.status, response.read())
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()

    def again_later(self, report: Report) -> None:
        with self._lock:
            self._late.append((self.count + AGAIN_AFTER, report))

    def take(self, report: Report) -> Answer | None:
        if report.is_heartbeat or self.meet is None:
            return self.forward(report)
        with self._lock:
            self.count += 1
            number, meet = self.count, self.meet
            due = [late for at, late in self._late if at <= number]
            self._late = [(at, late) for at, late in self._late if at > number]
        answer = meet(number, report, self)
        for late in due:
            self.forward(late)
        return answer

    def send_late_ones(self) -> int:
        """All that is still to come again, now that the runs are over; how many."""
        with self._lock:
            due, self._late = self._late, []
        for _, late in due:
            self.forward(late)
        return len(due)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        doorway = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                headers = {name: self.headers[name] for name in ("Authorization", "Content-Type")}
                answer = doorway.take(Report(self.path, headers, body))
                if answer is None:
                    self.close_connection = True
                    return
                self.send_response(answer.status)
                self.send_header("Content-Length", str(len(answer.body)))
                self.send_header("Content-Type", "application/json")
                self.end_headers()
                self.wfile.write(answer.body)

            def log_message(self, *_: object) -> None:
                """Quiet."""

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except (ConnectionError, BrokenPipeError):  # a worker that was killed
                    self.close_connection = True

        return Handler
