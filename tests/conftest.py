"""Tests that cross packages: their helper modules, and the example repository that they submit."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "example"), str(ROOT / "deploy")]


@pytest.fixture(scope="session")
def example(tmp_path_factory):
    """The example repository of `make run`."""
    from repository import make_repository

    return make_repository(tmp_path_factory.mktemp("example") / "repository")


@pytest.fixture(scope="session")
def embedded(tmp_path_factory):
    """An embedded stack that lasts as long as the tests: what it measured once is a baseline for the next."""
    from stacks import Embedded

    stack = Embedded(tmp_path_factory.mktemp("embedded"))
    try:
        stack.start()
        yield stack
    finally:
        stack.stop()


@pytest.fixture(scope="session")
def embedded_outcome(embedded, example):
    """The run's view, report, changed answers and page. PostgreSQL is killed while kernels are built, the service while
    they are checked, and the supervisor with all its children when the first answers have come."""
    from example_run import answered, finished, reached, report_of, submit

    run_id = submit(embedded.server, example)
    reached(embedded.server, run_id, lambda view: view["state"] == "building")
    embedded.kill_part("postgres")
    reached(embedded.server, run_id, lambda view: view["state"] in ("checking", "evaluating"))
    embedded.kill_part("service")
    reached(embedded.server, run_id, answered)
    embedded.kill()
    server = embedded.start()
    view = finished(server, run_id)
    changed = server.get(f"/api/v1/runs/{run_id}/samples", changed=True)
    return view, report_of(server, run_id), changed, server.get_text(f"/runs/{run_id}")
