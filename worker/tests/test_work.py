"""A whole attempt: a real repository, a real child behind the wall, real HTTP."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from driftline.contracts.worker_api import WorkerFacts
from driftline_worker.bench import Bench
from driftline_worker.client import ServiceClient
from driftline_worker.held_attempts import HeldAttempts
from driftline_worker.running_attempts import RunningAttempts
from driftline_worker.sandbox import Sandbox
from driftline_worker.settings import ChildSettings
from driftline_worker.work import Desk, drained, work

FACTS = WorkerFacts(name="w", host="h", environment_id="e", sandbox="plain")
MakeDesk = Callable[[str], tuple[Desk, threading.Event]]


@pytest.fixture
def make_desk(
    usual_sandbox: Sandbox, children: Callable[[str], Path], service_url: str, tmp_path: Path
) -> Iterator[MakeDesk]:
    hurry = threading.Event()
    client = ServiceClient(service_url, retry_seconds=3, hurry=hurry)

    def make(code: str) -> tuple[Desk, threading.Event]:
        fields: dict[str, Any] = {"data_dir": tmp_path / "data", "allow_local_repositories": True, "threads": 1}
        bench = Bench(ChildSettings(**fields), usual_sandbox, children=children(code))
        return Desk(bench, client, FACTS, RunningAttempts(), HeldAttempts(tmp_path / "held")), hurry

    yield make
    client.close()


def finish(service: Any) -> Any:
    assert len(service.bodies("finish")) == 1, service.calls
    return service.bodies("finish")[0]


def test_from_claim_to_finish(service: Any, make_desk: MakeDesk, tmp_path: Path) -> None:
    desk, _ = make_desk("""
        hello()
        spec = json.load(open(sys.argv[sys.argv.index("--spec") + 1]))
        for folder, _, files in os.walk(spec["import_dir"]):
            for file in files: case(os.path.relpath(os.path.join(folder, file), spec["import_dir"]))
        case(f"{spec['layout']} {spec['backends']} {spec['device']}")
        for i in range(450): case(f"case {i}")
        send("result", lines=452)
    """)
    work(desk, uuid4(), "claim-token")
    end = finish(service)
    batches = service.bodies("lines")
    assert (end["outcome"], end["batches"], end["dropped_lines"]) == ("succeeded", len(batches), 0)
    assert [batch["sequence"] for batch in batches] == list(range(len(batches)))
    assert len(batches) >= 3
    names = [line["name"] for batch in batches for line in batch["lines"] if line["type"] != "hello"]
    assert names[:2] == ["mamba2_varlen/__init__.py", "mamba2_varlen ['torch', 'triton'] cpu"]
    assert names[2:] == [f"case {i}" for i in range(450)]
    assert service.calls[0][1] == "claim-token"
    assert {token for _, token, _ in service.calls[1:]} == {"attempt-token"}
    assert list((tmp_path / "data" / "scratch").iterdir()) == []


def test_lines_arrive_while_the_child_works(service: Any, make_desk: MakeDesk) -> None:
    desk, _ = make_desk("hello(); case('early'); time.sleep(2); send('result', lines=1)")
    thread = threading.Thread(target=work, args=(desk, uuid4(), "t"))
    thread.start()
    assert within(10, lambda: service.bodies("lines"))
    assert not service.bodies("finish")
    thread.join()
    assert finish(service)["outcome"] == "succeeded"


@pytest.mark.parametrize("status", [401, 409])
def test_a_job_that_is_not_to_be_had(service: Any, make_desk: MakeDesk, status: int) -> None:
    service.answers["claim"] = [status]
    desk, _ = make_desk("hello()")
    work(desk, uuid4(), "t")
    assert [door for door, _, _ in service.calls] == ["claim"]


def test_a_commit_that_is_not_there(service: Any, make_desk: MakeDesk) -> None:
    source = service.spec.source.model_copy(update={"sha": "f" * 40})
    service.spec = service.spec.model_copy(update={"source": source})
    desk, _ = make_desk("hello()")
    work(desk, uuid4(), "t")
    end = finish(service)
    assert (end["failure_kind"], end["reason"], end["batches"]) == ("permanent", "unknown_commit", 0)
    assert "f" * 40 in end["message"]


def test_a_repository_that_cannot_be_reached_is_tried_again(service: Any, make_desk: MakeDesk, tmp_path: Path) -> None:
    source = service.spec.source.model_copy(update={"url": str(tmp_path / "gone")})
    service.spec = service.spec.model_copy(update={"source": source})
    desk, _ = make_desk("hello()")
    work(desk, uuid4(), "t")
    assert (finish(service)["failure_kind"], finish(service)["reason"]) == ("transient", "unreachable_repository")


@pytest.mark.parametrize("lease_seconds", [1, 600])
def test_a_stop_directive_ends_a_silent_child_and_nothing_more_is_said(
    service: Any, make_desk: MakeDesk, lease_seconds: int
) -> None:
    service.directive = {"action": "stop", "reason": "cancelled"}
    service.lease_seconds = lease_seconds
    desk, _ = make_desk("hello(); time.sleep(60)")
    begun = time.monotonic()
    work(desk, uuid4(), "t")
    assert time.monotonic() - begun < 10
    assert not service.bodies("finish")


def test_a_lost_lease_ends_the_child_quietly(service: Any, make_desk: MakeDesk) -> None:
    service.answers["lines"] = [410]
    desk, _ = make_desk("hello(); case('a'); time.sleep(60)")
    begun = time.monotonic()
    work(desk, uuid4(), "t")
    assert time.monotonic() - begun < 10
    assert not service.bodies("finish")


def test_a_slow_service_does_not_blind_the_watch(service: Any, make_desk: MakeDesk) -> None:
    """Heartbeats go on, and what the child sent before it died arrives in full, in order."""
    service.answers["lines"] = [503, 503]
    service.lease_seconds = 1
    desk, _ = make_desk("hello()\nfor i in range(300): case(f'{i}')\nos.kill(os.getpid(), 9)")
    work(desk, uuid4(), "t")
    assert finish(service)["reason"] == "child_died"
    accepted = service.bodies("lines")[2:]
    lines = [line for batch in accepted for line in batch["lines"]]
    assert lines[0]["type"] == "hello"
    assert [line["name"] for line in lines[1:]] == [f"{i}" for i in range(300)]


def test_a_refused_report_fails_the_attempt(service: Any, make_desk: MakeDesk) -> None:
    service.answers["lines"] = [422]
    desk, _ = make_desk("hello(); case('a'); time.sleep(60)")
    work(desk, uuid4(), "t")
    assert (finish(service)["failure_kind"], finish(service)["reason"]) == ("permanent", "report_refused")


def test_a_worker_that_is_stopped_gives_its_job_back(service: Any, make_desk: MakeDesk) -> None:
    desk, hurry = make_desk("hello(); case('a'); time.sleep(60)")
    thread = threading.Thread(target=work, args=(desk, uuid4(), "t"))
    thread.start()
    assert within(10, lambda: service.bodies("lines"))
    drained(desk, hurry)
    thread.join(8)
    assert not thread.is_alive()
    assert (finish(service)["failure_kind"], finish(service)["reason"]) == ("transient", "worker_stopped")


def within(seconds: float, holds: Callable[[], object]) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
