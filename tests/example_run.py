"""The run of the example's bug: asked for, waited for, read. What it must say is in the tests."""

from driftline.cli.failure import CommandError
from driftline.contracts.report import RunReport
from stacks import wait_for

QUESTIONS = 12
BUG = "initial-state-decay"


def submit(server, example):
    run = server.post(
        "/api/v1/runs",
        {"repo": str(example.path), "head": BUG, "base": "main", "name": BUG, "questions": QUESTIONS, "confirm": False},
    )
    return run["run_id"]


def finished(server, run_id):
    def look():
        run = view_of(server, run_id)
        if run is None:
            return None
        assert run["state"] not in ("failed", "cancelled"), run["events"]
        return run if run["state"] == "done" else None

    return wait_for(look, f"run {run_id}")


def view_of(server, run_id):
    """The run's view, or None while service or database are away."""
    try:
        return server.get(f"/api/v1/runs/{run_id}")
    except CommandError:
        return None


def report_of(server, run_id):
    report = server.get(f"/api/v1/runs/{run_id}/report")
    RunReport.model_validate(report)
    return report
