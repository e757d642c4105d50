"""POST, GET /api/v1/bisects, GET …/{id} and POST …/{id}/cancel."""

from typing import Annotated
from uuid import UUID

from driftline.contracts.base import Contract
from driftline.contracts.bisect import BisectList, BisectView
from fastapi import APIRouter, Body, Query, Request, Response
from pydantic import Field

from driftline_service.api import problems
from driftline_service.api.context import ContextDep, SessionDep, SubmitterDep
from driftline_service.api.problems import Problem
from driftline_service.api.run_submission import CancelRequest
from driftline_service.bisects import stepping
from driftline_service.bisects.plan import BisectRequest, plan
from driftline_service.bisects.views import bisect_view, view_of
from driftline_service.clock import now_utc
from driftline_service.database import audit, bisect_queries, run_queries
from driftline_service.database.tables import Bisect
from driftline_service.logs import logger
from driftline_service.runs.quota import check_quota

router = APIRouter(prefix="/api/v1/bisects", tags=["bisects"])

LARGEST_PAGE = 200
_log = logger("driftline.api")


class BisectFilter(Contract):
    """Which searches to list."""

    before: UUID | None = Field(default=None, description="only those older than this one")
    limit: int = Field(default=50, ge=1, le=LARGEST_PAGE)


@router.post("", status_code=201, responses=problems.responses(401, 403, 413, 422, 429, 503))
def begin_bisect(who: SubmitterDep, body: BisectRequest, found: ContextDep, response: Response) -> BisectView:
    """Search for the first commit after `good` from which the lane is worse. Each step is a run against `good`. A search that
    was let in goes on to its end; its runs count against what its repository may have for others."""
    new = plan(body, lanes=found.lanes, settings=found.settings)
    with found.sessions.begin() as session:
        check_quota(session, new.repository_url, found.settings.quota, now_utc())
        bisect = Bisect(
            repository_id=run_queries.repository_id(session, new.repository_url, new.main_branch), layout=new.layout,
            good=new.good.model_dump(mode="json"), commits=[each.model_dump(mode="json") for each in new.commits],
            lane=new.lane.model_dump(mode="json"), margin=new.margin, created_by=who.name,
        )  # fmt: skip
        session.add(bisect)
        session.flush()
        stepping.step(session, bisect.id, now_utc())
        audit.note(session, who.name, "bisect_begun", bisect.id, repository=new.repository_url, good=new.good.sha,
                   bad=new.commits[-1].sha)  # fmt: skip
        bisect_id = bisect.id
    _log.info("bisect_begun", bisect_id=str(bisect_id), commits=len(new.commits))
    response.headers["Location"] = f"/api/v1/bisects/{bisect_id}"
    with found.sessions() as session:
        return bisect_view(session, bisect_id, found.settings.public_url)


@router.get("", responses=problems.responses(404, 422))
def list_bisects(
    request: Request, session: SessionDep, found: ContextDep, wanted: Annotated[BisectFilter, Query()]
) -> BisectList:
    """Searches, newest first. Follow `next` for older ones."""
    before = None if wanted.before is None else session.get(Bisect, wanted.before)
    rows = bisect_queries.newest(session, before=before, limit=wanted.limit + 1)
    views = [view_of(session, row, found.settings.public_url) for row in rows[: wanted.limit]]
    more = request.url.include_query_params(before=views[-1].bisect_id) if len(rows) > wanted.limit else None
    return BisectList(bisects=views, next=f"{more.path}?{more.query}" if more else None)


@router.get("/{bisect_id}", responses=problems.responses(404, 422))
def show_bisect(bisect_id: UUID, session: SessionDep, found: ContextDep) -> BisectView:
    """One search: its steps, what came out of each, and the questions that it took."""
    return bisect_view(session, bisect_id, found.settings.public_url)


@router.post("/{bisect_id}/cancel", responses=problems.responses(401, 403, 404, 409))
def cancel_bisect(
    who: SubmitterDep,
    bisect_id: UUID,
    found: ContextDep,
    body: Annotated[CancelRequest, Body()] = CancelRequest(),  # noqa: B008 - frozen
) -> BisectView:
    """Stop a search, and the run of its open step."""
    with found.sessions.begin() as session:
        bisect_view(session, bisect_id, found.settings.public_url)
        if not stepping.cancel(session, bisect_id, body.reason, now_utc()):
            raise Problem(
                409, "already_finished", f"bisect {bisect_id} is over already; a finished search does not change"
            )
        audit.note(session, who.name, "bisect_cancelled", bisect_id, reason=body.reason)
    with found.sessions() as session:
        return bisect_view(session, bisect_id, found.settings.public_url)
