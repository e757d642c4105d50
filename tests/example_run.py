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
    return reached(server, run_id, lambda view: view["state"] == "done")


def reached(server, run_id, there):
    """The first view that is `there`. A run that ended without getting there is not waited for: its events tell why."""

    def look():
        view = view_of(server, run_id)
        if view is None:
            return None
        if there(view):
            return view
        assert view["state"] not in ("done", "failed", "cancelled"), view["events"]
        return None

    return wait_for(look, f"run {run_id}")


def answered(view):
    """Whether an evaluation has its answers. It stays so: a few questions' answers come in one batch, and the phase that
    counts them is over before anyone looks twice."""
    return any(job["phase"] == "teacher_forced" for job in view["jobs"])


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
