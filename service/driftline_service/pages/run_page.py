"""What the page of one run shows besides its view: the cases chosen, the plots there are, why it ended."""

from dataclasses import dataclass
from typing import Any

from driftline.contracts.report import JobView, RunView
from driftline.contracts.words import Metric
from driftline.judge.cells import LOGPROB_MARGIN
from driftline.report.builds import build_problems
from driftline.report.interval_plot import plotted_cells
from driftline.report.suite import lines as suite_lines

from driftline_service.database.tables import Run
from driftline_service.pages.case_choice import case_choice
from driftline_service.pages.changes import is_changed


@dataclass(frozen=True, slots=True)
class Ending:
    """Why a run failed; empty where it did not."""

    reason: str = ""
    message: str = ""


def run_page(run: Run, view: RunView, *, cases: str | None) -> dict[str, Any]:
    """Values of the template. `cases` is what a link asked for: `failed`, `all`, or None for what fits best."""
    failed = any(case.head_passed is False for case in view.kernel_check.cases)
    failed_only = cases == "failed" or (cases != "all" and failed)
    return {
        "view": view,
        "ending": Ending(run.failure_reason or "", run.failure_message or ""),
        "started_at": run.started_at,
        "cases": case_choice(view.kernel_check.cases, failed_only=failed_only),
        "asked_cases": cases,
        "plots": [metric for metric in Metric if plotted_cells(view, metric)],
        "builds": sorted(view.builds, key=lambda build: (not build.head_error, not is_changed(build))),
        "suite_lines": list(suite_lines(view.suite)) if view.suite is not None else [],
        "build_problems": build_problems(view),
        "changed_builds": sum(is_changed(build) for build in view.builds),
        "finished_jobs": sum(job.state.finished for job in view.jobs),
        "logprob_margin": LOGPROB_MARGIN,
        "job_label": job_label,
    }


def margin_of(view: RunView, metric: Metric) -> float:
    """Largest difference that counts as none, in the metric's own unit."""
    return LOGPROB_MARGIN if metric is Metric.LOGPROB else view.margin


def job_label(job: JobView) -> str:
    """A job in words: what, of which arm, on which lane."""
    return (
        f"{job.kind} {job.arm}" + (f", {job.lane}" if job.lane else "") + (f", pair {job.pair + 1}" if job.pair else "")
    )
