"""POST /api/v1/runs and POST …/cancel: the two writes of the public API."""

from dataclasses import replace
from typing import Annotated
from uuid import UUID

from driftline.contracts.base import Contract
from fastapi import APIRouter, Body, Header, Response
from pydantic import Field, StringConstraints
from sqlalchemy import select

from driftline_service.api import problems
from driftline_service.api.context import Context, ContextDep, SubmitterDep
from driftline_service.api.problems import Problem
from driftline_service.api.run_list import RunSummary, run_summary, unknown_run
from driftline_service.clock import now_utc
from driftline_service.database import audit
from driftline_service.database.tables import Run
from driftline_service.intake.plan import plan
from driftline_service.intake.request import OneLine, SubmitRequest
from driftline_service.logs import about, logger
from driftline_service.runs.cancellation import cancel
from driftline_service.runs.quota import check_quota
from driftline_service.runs.submission import submit

router = APIRouter(prefix="/api/v1/runs", tags=["runs"])

IdempotencyKey = Annotated[
    str | None,
    Header(min_length=1, max_length=200, description="The same key gives the same run again, however often it is sent"),
]

_log = logger("driftline.api")


class CancelRequest(Contract):
    reason: Annotated[str, StringConstraints(max_length=500), OneLine] = Field(
        default="cancelled through the API", examples=["wrong branch"]
    )


@router.post("", status_code=201, responses=problems.responses(401, 403, 409, 413, 422, 429, 503))
def submit_run(
    who: SubmitterDep,
    body: SubmitRequest,
    found: ContextDep,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> RunSummary:
    """Ask whether a commit moved the accuracy. Names are resolved now: what is tested never moves afterwards."""
    run_id = _earlier(found, body, idempotency_key)
    if run_id is None:
        made = plan(body, lanes=found.lanes, settings=found.settings, idempotency_key=idempotency_key)
        new = replace(made, created_by=who.name)
        with found.sessions.begin() as session:
            check_quota(session, new.repository_url, found.settings.quota, now_utc())
            run_id = submit(session, new)
            audit.note(session, who.name, "run_submitted", run_id, repository=new.repository_url, head=new.head.sha)
        with about(run_id=run_id):
            _log.info("run_submitted", head=new.head.sha, base=new.base.sha, lanes=[lane.name for lane in new.lanes])
    else:
        response.status_code = 200
    response.headers["Location"] = f"/api/v1/runs/{run_id}"
    with found.sessions() as session:
        return run_summary(session, run_id, found.settings.public_url)


@router.post("/{run_id}/cancel", responses=problems.responses(401, 403, 404, 409))
def cancel_run(
    who: SubmitterDep,
    run_id: UUID,
    found: ContextDep,
    body: Annotated[CancelRequest, Body()] = CancelRequest(),  # noqa: B008 - frozen
) -> RunSummary:
    """Stop a run. What it measured so far stays stored."""
    with found.sessions.begin() as session:
        if session.scalar(select(Run.id).where(Run.id == run_id)) is None:
            raise unknown_run(run_id)
        if not cancel(session, run_id, body.reason):
            state = session.scalar(select(Run.state).where(Run.id == run_id))
            raise Problem(409, "already_finished", f"run {run_id} is {state} already; a finished run does not change")
        audit.note(session, who.name, "run_cancelled", run_id, reason=body.reason)
    with found.sessions() as session:
        return run_summary(session, run_id, found.settings.public_url)


def _earlier(found: Context, body: SubmitRequest, key: str | None) -> UUID | None:
    """The run that was made under this key, so that a repeated request fetches nothing.

    Raises:
        Problem: 409 if the key was used for something else.
    """
    if key is None:
        return None
    with found.sessions() as session:
        run = session.scalar(select(Run).where(Run.idempotency_key == key))
        if run is None:
            return None
        if (run.repository.url, run.head_ref) != (body.repo, body.head):
            detail = f"Idempotency-Key {key!r} was used for {run.head_ref!r} of {run.repository.url}; take a new key"
            raise Problem(409, "idempotency_key_reused", detail)
        return run.id
