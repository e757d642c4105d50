"""GET /api/v1/runs: runs, newest first, a page at a time."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from driftline.contracts.base import Contract, Sha
from driftline.contracts.words import KernelCheckResult, RunState, Verdict
from fastapi import APIRouter, Query, Request
from pydantic import ConfigDict, Field
from sqlalchemy import Row, Select, select, tuple_
from sqlalchemy.orm import Session

from driftline_service.api import problems
from driftline_service.api.context import ContextDep, SessionDep
from driftline_service.api.problems import Problem
from driftline_service.database.tables import Repository, Run

router = APIRouter(prefix="/api/v1/runs", tags=["runs"])

LARGEST_PAGE = 200


EXAMPLE: dict[str, Any] = {
    "run_id": "7e4fd0a2-9f1b-4c58-8a47-2f6c3f1d5b90",
    "name": "refactor the scan",
    "repository": "https://github.com/me/kernels.git",
    "base": "316b1bf706ea04b3ac4c2b6a8ef0ee8a52b9ea30",
    "head": "0d17daaa6b8f3d0a0e9c0c6c4b8a1a54f2f9c9b7",
    "state": "done",
    "verdict": "equivalent",
    "kernel_check": "passed",
    "color": "green",
    "failure": None,
    "created_at": "2026-12-02T05:30:00Z",
    "finished_at": "2026-12-02T05:36:12Z",
    "url": "http://127.0.0.1:8642/runs/7e4fd0a2-9f1b-4c58-8a47-2f6c3f1d5b90",
}


class RunSummary(Contract):
    """One line of the list."""

    model_config = ConfigDict(json_schema_extra={"examples": [EXAMPLE]})

    run_id: UUID
    name: str
    repository: str
    base: Sha
    head: Sha
    state: RunState
    verdict: Verdict | None = Field(description="None until the run is done")
    kernel_check: KernelCheckResult | None
    color: str | None = Field(description="of the headline: green, red, neutral or grey")
    failure: str | None = Field(description="why a failed run failed")
    created_at: datetime
    finished_at: datetime | None
    url: str = Field(description="the run's page")


class RunList(Contract):
    runs: list[RunSummary]
    next: str | None = Field(description="path of the next page, if there are more")


class RunFilter(Contract):
    """What to list."""

    state: RunState | None = None
    repo: str | None = Field(default=None, description="URL exactly as submitted")
    head: str | None = Field(default=None, pattern="^[0-9a-f]{4,40}$", description="beginning of the head's SHA")
    before: UUID | None = Field(default=None, description="only runs older than this one")
    limit: int = Field(default=50, ge=1, le=LARGEST_PAGE)


COLUMNS = (
    Run.id, Run.name, Repository.url, Run.base_sha, Run.head_sha, Run.state, Run.view["verdict"].astext,
    Run.view["kernel_check"]["result"].astext, Run.view["headline"]["color"].astext, Run.failure_message,
    Run.created_at, Run.finished_at,
)  # fmt: skip
"""Not whole rows: a judged run holds its whole view, which is large."""


@router.get("", responses=problems.responses(404, 422))
def list_runs(
    request: Request, session: SessionDep, found: ContextDep, wanted: Annotated[RunFilter, Query()]
) -> RunList:
    """Runs, newest first. Follow `next` for older ones."""
    rows = session.execute(_query(session, wanted).limit(wanted.limit + 1)).all()
    runs = [_summary(row, found.settings.public_url) for row in rows[: wanted.limit]]
    more = request.url.include_query_params(before=runs[-1].run_id) if len(rows) > wanted.limit else None
    return RunList(runs=runs, next=f"{more.path}?{more.query}" if more else None)


def run_summary(session: Session, run_id: UUID, public_url: str) -> RunSummary:
    """One run's line.

    Raises:
        Problem: 404 if there is no such run.
    """
    row = session.execute(select(*COLUMNS).join(Repository).where(Run.id == run_id)).one_or_none()
    if row is None:
        raise unknown_run(run_id)
    return _summary(row, public_url)


def unknown_run(run_id: UUID) -> Problem:
    return Problem(404, "unknown_run", f"there is no run {run_id}; GET /api/v1/runs lists them")


def _query(session: Session, wanted: RunFilter) -> Select[tuple[object, ...]]:
    query = select(*COLUMNS).join(Repository).order_by(Run.created_at.desc(), Run.id.desc())
    if wanted.state is not None:
        query = query.where(Run.state == wanted.state)
    if wanted.repo is not None:
        query = query.where(Repository.url == wanted.repo)
    if wanted.head is not None:
        query = query.where(Run.head_sha.startswith(wanted.head))
    if wanted.before is not None:
        created_at = session.scalar(select(Run.created_at).where(Run.id == wanted.before))
        if created_at is None:
            raise unknown_run(wanted.before)
        query = query.where(tuple_(Run.created_at, Run.id) < tuple_(created_at, wanted.before))
    return query


def _summary(row: Row[tuple[object, ...]], public_url: str) -> RunSummary:
    names = (
        "run_id", "name", "repository", "base", "head", "state", "verdict", "kernel_check", "color", "failure",
        "created_at", "finished_at",
    )  # fmt: skip
    fields = dict(zip(names, row, strict=True))
    return RunSummary.model_validate(fields | {"url": f"{public_url.rstrip('/')}/runs/{fields['run_id']}"})
