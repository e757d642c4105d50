"""The addresses of the pages. What they show is gathered by run_page.py and its kin; templates lie in dashboards/."""

from typing import Annotated
from uuid import UUID

from driftline.contracts.words import Metric, RunState
from driftline.report.interval_plot import interval_plot, plotted_cells
from fastapi import APIRouter, Depends, Query
from fastapi.responses import Response

from driftline_service.api.context import ContextDep, SessionDep
from driftline_service.database.run_queries import lanes_of, run_by_id
from driftline_service.database.tables import Run
from driftline_service.judging import changed_answers, live_view
from driftline_service.pages import renderer
from driftline_service.pages.page_route import NotFound, PageRoute
from driftline_service.pages.run_page import margin_of, run_page
from driftline_service.pages.run_rows import run_rows
from driftline_service.pages.samples_page import moved_filters, samples_page

router = APIRouter(include_in_schema=False, route_class=PageRoute)


def _run(run_id: str, session: SessionDep) -> Run:
    found = _as_id(run_id)
    run = None if found is None else run_by_id(session, found)
    if run is None:
        raise NotFound(f"There is no run {run_id}. Its address may be cut off, or it belongs to another service.")
    return run


RunDep = Annotated[Run, Depends(_run)]


@router.get("/")
def show_runs(session: SessionDep, found: ContextDep, state: str = "", before: str = "") -> Response:
    """The list of runs. A state or a run that does not exist is as good as none: old links must not break."""
    return _list(session, found, template="runs.html", state=state, before=before)


@router.get("/live")
def show_runs_live(session: SessionDep, found: ContextDep, state: str = "", before: str = "") -> Response:
    """The part of the list that changes."""
    return _list(session, found, template="_runs.html", state=state, before=before)


@router.get("/runs/{run_id}")
def show_run(run: RunDep, session: SessionDep, found: ContextDep, cases: str | None = None) -> Response:
    """One run: its verdict and why, or how far it is."""
    values = run_page(run, live_view(session, run.id), cases=cases)
    return renderer.page(found.settings.dashboards_dir, "run.html", values)


@router.get("/runs/{run_id}/live")
def show_run_live(run: RunDep, session: SessionDep, found: ContextDep, cases: str | None = None) -> Response:
    """The part of the run's page that changes."""
    values = run_page(run, live_view(session, run.id), cases=cases)
    return renderer.page(found.settings.dashboards_dir, "_run.html", values)


@router.get("/runs/{run_id}/intervals.svg")
def show_intervals(run: RunDep, session: SessionDep, metric: Metric = Metric.EXACT_MATCH) -> Response:
    """The plot of one metric's cells."""
    view = live_view(session, run.id)
    cells = plotted_cells(view, metric)
    if not cells:
        raise NotFound(f"Run {run.id} has no interval of {metric} yet.")
    return renderer.plot(interval_plot(cells, metric=metric, margin=margin_of(view, metric)))


@router.get("/runs/{run_id}/samples")
def show_samples(
    run: RunDep, session: SessionDep, found: ContextDep, lane: str = "", offset: Annotated[int, Query(ge=0)] = 0
) -> Response:
    """The changed answers, both arms side by side."""
    lanes = [each.name for each in lanes_of(session, run.id)]
    if lane and lane not in lanes:
        raise NotFound(f"Run {run.id} has no lane {lane}.")
    changed = changed_answers(session, run.id)
    answers = samples_page(changed.places, lanes=lanes, lane=lane, offset=offset)
    values = {
        "run": run,
        "answers": answers,
        "shown": changed.load(session, answers.shown),
        "moved_filters": moved_filters,
    }
    return renderer.page(found.settings.dashboards_dir, "samples.html", values)


@router.get("/runs/{rest:path}")
def show_nothing(rest: str) -> Response:
    """A mistyped address below the runs, told to a person."""
    raise NotFound(f"There is no page runs/{rest}.")


def _list(session: SessionDep, found: ContextDep, *, template: str, state: str, before: str) -> Response:
    wanted = RunState(state) if state in set(RunState) else None
    start = _as_id(before)
    values = {
        "runs": run_rows(session, state=wanted, before=start), "state": wanted, "states": list(RunState),
        "before": start, "public_url": found.settings.public_url,
    }  # fmt: skip
    return renderer.page(found.settings.dashboards_dir, template, values)


def _as_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
