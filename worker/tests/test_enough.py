"""That enough was asked reaches the child through every wall, and it is the child that ends."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

from driftline.contracts.worker_api import Directive, WorkerFacts
from driftline_worker.bench import Bench
from driftline_worker.client import ServiceClient
from driftline_worker.ending import Succeeded
from driftline_worker.held_attempts import HeldAttempts
from driftline_worker.running_attempts import RunningAttempts
from driftline_worker.sandbox import Sandbox
from driftline_worker.settings import ChildSettings
from driftline_worker.stop_request import StopRequest
from driftline_worker.work import Desk, work

ENOUGH = Directive(action="stop", after=300, reason="equivalent")

WAITS = """
    from pathlib import Path
    file = Path(sys.argv[sys.argv.index("--spec") + 1]).with_name("enough")
    hello(); case("waits")
    while not file.exists(): time.sleep(0.02)
    case(f"enough: {file.read_text()}")
    try: file.write_text("1")
    except OSError: case("and cannot be changed")
    send("result", lines=2 + SEALED)
"""


def test_said_while_the_child_works(run_code: Any, any_sandbox: Sandbox) -> None:
    sealed = int(any_sandbox.kind == "bubblewrap")
    stop = StopRequest()
    timer = threading.Timer(0.5, stop.follow, (ENOUGH,))
    timer.start()
    told = run_code(f"SEALED = {sealed}\n" + _dedented(WAITS), stop=stop)
    timer.join()
    assert isinstance(told.ending, Succeeded)
    names = [line.name for line in told.lines]
    assert names == ["waits", "enough: 300", *(["and cannot be changed"] * sealed)]
    assert stop.why is None


def test_said_before_the_child_starts(run_code: Any, any_sandbox: Sandbox) -> None:
    sealed = int(any_sandbox.kind == "bubblewrap")
    stop = StopRequest()
    stop.follow(ENOUGH)
    told = run_code(f"SEALED = {sealed}\n" + _dedented(WAITS), stop=stop)
    assert isinstance(told.ending, Succeeded)
    assert "enough: 300" in [line.name for line in told.lines]


def test_said_when_the_child_is_gone_it_harms_nothing(run_code: Any, scratch: Any) -> None:
    stop = StopRequest()
    told = run_code("hello(); send('result', lines=0)", stop=stop)
    scratch.given.rename(scratch.root / "taken away")
    stop.follow(ENOUGH)
    assert isinstance(told.ending, Succeeded)


def test_an_attempt_that_has_enough_goes_on_to_its_finish(
    service: Any, service_url: str, usual_sandbox: Sandbox, children: Callable[[str], Path], tmp_path: Path
) -> None:
    """The whole worker against a service that says so at every report."""
    service.directive = ENOUGH.model_dump(mode="json")
    sealed = int(usual_sandbox.kind == "bubblewrap")
    fields: dict[str, Any] = {"data_dir": tmp_path / "data", "allow_local_repositories": True, "threads": 1}
    client = ServiceClient(service_url, retry_seconds=3, hurry=threading.Event())
    bench = Bench(ChildSettings(**fields), usual_sandbox, children=children(f"SEALED = {sealed}\n" + _dedented(WAITS)))
    facts = WorkerFacts(name="w", host="h", environment_id="e", sandbox="plain")
    work(Desk(bench, client, facts, RunningAttempts(), HeldAttempts(tmp_path / "held")), uuid4(), "t")
    client.close()
    [end] = service.bodies("finish")
    assert (end["outcome"], end["batches"]) == ("succeeded", len(service.bodies("lines")))
    lines = [line for batch in service.bodies("lines") for line in batch["lines"]]
    assert "enough: 300" in [line.get("name") for line in lines]


def _dedented(code: str) -> str:
    import textwrap

    return textwrap.dedent(code)
