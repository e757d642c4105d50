"""The service's four doors over real HTTP, and what becomes of a service that is away, restarts, or says no."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import pytest
from driftline.contracts.channel import Progress
from driftline.contracts.worker_api import Finish, LineBatch, WorkerFacts
from driftline_worker.client import Gone, Refused, ServiceClient, Unreachable

Make = Callable[..., ServiceClient]
FACTS = WorkerFacts(name="w", host="h", environment_id="e", sandbox="plain")


@pytest.fixture
def client() -> Iterator[Callable[..., ServiceClient]]:
    """Makes clients, and closes them afterwards."""
    made: list[ServiceClient] = []

    def make(url: str, *, seconds: float = 20, hurry: bool = False) -> ServiceClient:
        event = threading.Event()
        if hurry:
            event.set()
        made.append(ServiceClient(url, retry_seconds=seconds, hurry=event))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_all_four_doors(client: Make, service: Any, service_url: str) -> None:
    asked = client(service_url)
    claim = asked.claim(uuid4(), "claim-token", FACTS)
    batch = LineBatch(sequence=0, lines=[Progress(phase="load", done=1, total=2)])
    assert asked.lines(claim.attempt_id, claim.attempt_token, batch).action == "continue"
    assert asked.heartbeat(claim.attempt_id, claim.attempt_token).action == "continue"
    assert asked.finish(claim.attempt_id, claim.attempt_token, Finish(outcome="succeeded", batches=1)).reason == ""
    assert [(door, token) for door, token, _ in service.calls] == [
        ("claim", "claim-token"), ("lines", "attempt-token"), ("heartbeat", "attempt-token"),
        ("finish", "attempt-token"),
    ]  # fmt: skip
    assert claim.spec == service.spec
    assert service.bodies("lines") == [batch.model_dump(mode="json")]


@pytest.mark.parametrize("status", [401, 403, 404, 409, 410])
def test_a_lease_that_is_over_is_no_error(client: Make, service: Any, service_url: str, status: int) -> None:
    service.answers["heartbeat"] = [status]
    with pytest.raises(Gone):
        client(service_url).heartbeat(uuid4(), "t")
    assert len(service.calls) == 1


@pytest.mark.parametrize("status", [400, 413, 422])
def test_what_is_not_understood_is_not_sent_again(client: Make, service: Any, service_url: str, status: int) -> None:
    service.answers["lines"] = [status]
    with pytest.raises(Refused, match=str(status)):
        client(service_url).lines(uuid4(), "t", LineBatch(sequence=0, lines=[]))
    assert len(service.calls) == 1


def test_an_answer_of_another_version_is_named(client: Make, service: Any, service_url: str) -> None:
    service.directive = {"action": "dance"}
    with pytest.raises(Refused, match="does not understand"):
        client(service_url).heartbeat(uuid4(), "t")


def test_a_service_in_trouble_is_asked_again(client: Make, service: Any, service_url: str) -> None:
    service.answers["heartbeat"] = [500, 503, 429]
    assert client(service_url).heartbeat(uuid4(), "t").action == "continue"
    assert len(service.calls) == 4


def test_a_restart_of_the_service_is_survived(client: Make, service: Any, served: Callable[..., Any]) -> None:
    with served(service) as port:
        asked = client(f"http://127.0.0.1:{port}")
        asked.heartbeat(uuid4(), "t")
    answers: list[str] = []
    thread = threading.Thread(target=lambda: answers.append(asked.heartbeat(uuid4(), "t").action))
    thread.start()
    time.sleep(0.6)
    assert not answers
    with served(service, port):
        thread.join(15)
    assert answers == ["continue"]


def test_a_service_that_stays_away_is_given_up(client: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    begun = time.monotonic()
    with pytest.raises(Unreachable, match=str(port)):
        client(f"http://127.0.0.1:{port}", seconds=0.8).heartbeat(uuid4(), "t")
    assert 0.3 < time.monotonic() - begun < 5


def test_a_worker_in_a_hurry_asks_once(client: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(Unreachable):
        client(f"http://127.0.0.1:{port}", hurry=True).heartbeat(uuid4(), "t")
