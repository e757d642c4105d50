"""`--watch` outlasts a server that is away or says that its database is, and gives up with what it said last."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from driftline.cli import watch
from driftline.cli.failure import CommandError
from driftline.cli.server import Server

RUN = "00000000-0000-0000-0000-000000000001"
VIEW = {
    "run_id": RUN, "name": "n", "repository": "r", "base": "a" * 40, "head": "b" * 40, "base_subject": "",
    "head_subject": "", "state": "cancelled", "created_at": "2026-01-01T00:00:00Z", "finished_at": None,
    "margin": 0.025, "method_version": "1", "inputs_hash": "", "verdict": None,
    "headline": {"color": "neutral", "sentence": ""},
    "kernel_check": {"result": "not_judged", "reason": "", "device": None, "failed_cases": [], "cases": []},
    "lanes": [], "builds": [], "jobs": [],
    "events": [{"at": "2026-01-01T00:00:00Z", "kind": "run_cancelled", "message": "seen enough"}],
}  # fmt: skip


class Answers(BaseHTTPRequestHandler):
    """`troubles` is how often the event stream is refused before it tells of the end."""

    troubles = 0

    def do_GET(self) -> None:
        if not self.path.endswith("/events"):
            self.answer(200, "application/json", json.dumps(VIEW))
        elif type(self).troubles:
            type(self).troubles -= 1
            problem = {"detail": "0 MB are left on the disk: free some", "reason": "database_unavailable"}
            self.answer(503, "application/problem+json", json.dumps(problem))
        else:
            self.answer(200, "text/event-stream", 'event: progress\ndata: {"state": "cancelled", "jobs": []}\n\n')

    def answer(self, status: int, media_type: str, body: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        return


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(watch, "PAUSE_SECONDS", 0.01)
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        yield Server(f"http://127.0.0.1:{listening.server_address[1]}", None)
        listening.shutdown()
        thread.join()


def test_a_database_that_comes_back_is_waited_for(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Answers, "troubles", 3)
    with pytest.raises(CommandError, match=f"run {RUN} is cancelled: seen enough") as told:
        watch.watch_run(server, RUN)
    assert (told.value.exit_code, Answers.troubles) == (3, 0)


def test_one_that_stays_away_is_given_up_with_its_words(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Answers, "troubles", 1 << 30)
    monkeypatch.setattr(watch, "PATIENCE_SECONDS", 0.1)
    with pytest.raises(CommandError, match=r"has not answered .*0 MB are left on the disk: free some") as told:
        watch.watch_run(server, RUN)
    assert told.value.exit_code == 1
