"""GET /api/v1/runs/{id}, …/report and …/samples: everything that is known of one run."""

from typing import Annotated, Literal
from uuid import UUID

from driftline.contracts.base import Contract
from driftline.contracts.impact import ImpactView
from driftline.contracts.report import ChangedSample, RunReport, RunView
from driftline.contracts.words import RunState
from driftline.report.markdown import markdown
from driftline.report.public import run_report
from fastapi import APIRouter, Header, Query
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from pydantic import Field
from sqlalchemy.orm import Session

from driftline_service.api import problems
from driftline_service.api.context import SessionDep
from driftline_service.api.problems import Problem
from driftline_service.api.run_list import unknown_run
from driftline_service.database.run_queries import lanes_of, run_by_id
from driftline_service.database.tables import Run
from driftline_service.judging import changed_answers, live_view

router = APIRouter(prefix="/api/v1/runs/{run_id}", tags=["runs"])

MARKDOWN = "text/markdown"
LARGEST_PAGE = 200


class SampleFilter(Contract):
    """Which questions to list."""

    changed: bool = Field(
        default=True, description="those whose response or correctness differs; others are not listed"
    )
    lane: str | None = Field(default=None, description="only this lane's")
    offset: int = Field(default=0, ge=0)
    limit: int = Field(default=50, ge=1, le=LARGEST_PAGE)


class SamplePage(Contract):
    total: int
    samples: list[ChangedSample]


@router.get("", responses=problems.responses(404, 422))
def show_run(run_id: UUID, session: SessionDep) -> RunView:
    """The run as its page shows it; before it is done, as far as it got."""
    _run(session, run_id)
    return live_view(session, run_id)


@router.get(
    "/report",
    responses=problems.responses(404, 409, 422)
    | {200: {"model": RunReport, "content": {MARKDOWN: {"schema": {"type": "string"}}}}},
)
def show_report(
    run_id: UUID,
    session: SessionDep,
    format: Annotated[Literal["json", "markdown"] | None, Query()] = None,  # noqa: A002 - the query's own name
    accept: Annotated[str, Header()] = "",
) -> Response:
    """The report of a finished run: JSON, or Markdown with `?format=markdown` or `Accept: text/markdown`."""
    run = _run(session, run_id)
    if run.state is not RunState.DONE:
        raise Problem(409, "not_done", _why_not_done(run))
    view = live_view(session, run_id)
    if format == "markdown" or (format is None and MARKDOWN in accept):
        return PlainTextResponse(markdown(view), media_type=f"{MARKDOWN}; charset=utf-8")
    return JSONResponse(run_report(view).model_dump(mode="json"))


@router.get("/impact", responses=problems.responses(404, 409, 422))
def show_impact(run_id: UUID, session: SessionDep) -> ImpactView:
    """What the change reaches, by the imports at head: models, operators, lanes, and what the repository's CI tests."""
    impact = _run(session, run_id).impact
    if impact is None:
        raise Problem(409, "no_impact", f"run {run_id} has no impact report: an A/A run, or its imports were not read")
    return ImpactView.model_validate(impact)


@router.get("/samples", responses=problems.responses(404, 422))
def list_samples(run_id: UUID, session: SessionDep, wanted: Annotated[SampleFilter, Query()]) -> SamplePage:
    """Questions whose answer changed, both arms side by side."""
    _run(session, run_id)
    _known_lane(session, run_id, wanted.lane)
    if not wanted.changed:
        raise Problem(422, "malformed", "changed: only changed samples are listed; ask for changed=true")
    changed = changed_answers(session, run_id)
    fitting = [place for place in changed.places if wanted.lane in (None, place.lane)]
    shown = changed.load(session, fitting[wanted.offset : wanted.offset + wanted.limit])
    return SamplePage(total=len(fitting), samples=shown)


def _known_lane(session: Session, run_id: UUID, wanted: str | None) -> None:
    names = [lane.name for lane in lanes_of(session, run_id)]
    if wanted is not None and wanted not in names:
        raise Problem(422, "unknown_lane", f"run {run_id} has no lane {wanted!r}; it has {', '.join(map(repr, names))}")


def _run(session: Session, run_id: UUID) -> Run:
    run = run_by_id(session, run_id)
    if run is None:
        raise unknown_run(run_id)
    return run


def _why_not_done(run: Run) -> str:
    if run.state is RunState.FAILED:
        return f"run {run.id} failed and has no report: {run.failure_reason}: {run.failure_message}"
    if run.state.finished:
        return f"run {run.id} is {run.state} and has no report"
    return f"run {run.id} is {run.state}; its report comes when it is done, GET /api/v1/runs/{run.id}/events tells"
