"""POST /api/v1/runs/{id}/repeats: measure a run's lanes again, as a run of its own.

A finished run never changes; its repeats are further evaluations of the same commits, and tell the lanes' noise floor.
"""

from typing import Annotated
from uuid import UUID

from driftline.contracts.base import Contract
from driftline.contracts.words import Arm
from fastapi import APIRouter, Body, Response
from pydantic import Field

from driftline_service.api import problems
from driftline_service.api.context import ContextDep, SubmitterDep
from driftline_service.api.run_list import RunSummary, run_summary, unknown_run
from driftline_service.clock import now_utc
from driftline_service.database import audit, run_queries
from driftline_service.database.event_queries import record
from driftline_service.intake.request import MOST_REPEATS
from driftline_service.runs.quota import check_quota
from driftline_service.runs.repeating import repeat_of
from driftline_service.runs.submission import submit

router = APIRouter(prefix="/api/v1/runs/{run_id}", tags=["runs"])


class RepeatRequest(Contract):
    """What to measure again, and how often."""

    times: int = Field(default=1, ge=1, le=MOST_REPEATS)
    arm: Arm | None = Field(default=None, description="both arms of this one commit: an A/A run; null: the pair again")


@router.post("/repeats", status_code=201, responses=problems.responses(401, 403, 404, 422, 429))
def repeat_run(
    who: SubmitterDep,
    run_id: UUID,
    found: ContextDep,
    response: Response,
    body: Annotated[RepeatRequest, Body()] = RepeatRequest(),  # noqa: B008 - frozen
) -> RunSummary:
    """Evaluate the run's lanes again, both arms anew and all questions. The answer is the run that does it."""
    with found.sessions.begin() as session:
        run = run_queries.run_by_id(session, run_id)
        if run is None:
            raise unknown_run(run_id)
        new = repeat_of(run, run_queries.lanes_of(session, run_id), times=body.times, arm=body.arm, created_by=who.name)
        check_quota(session, new.repository_url, found.settings.quota, now_utc())
        made = submit(session, new)
        what = "the pair" if body.arm is None else f"{body.arm.value} with itself"
        record(session, run_id, "run_repeated", f"{what} is measured again, {body.times} times, by run {made}")
        audit.note(session, who.name, "run_repeated", run_id, by=str(made), times=body.times)
    response.headers["Location"] = f"/api/v1/runs/{made}"
    with found.sessions() as session:
        return run_summary(session, made, found.settings.public_url)
