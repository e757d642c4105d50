"""The four endpoints. Each is one transaction; a refusal raised inside rolls it back."""

from datetime import timedelta
from typing import Annotated
from uuid import UUID

from driftline.contracts.channel import Sample
from driftline.contracts.worker_api import Claim, ClaimRequest, Directive, Finish, LineBatch
from fastapi import APIRouter, Depends, Header, Request

from driftline_service.api import problems
from driftline_service.api.problems import Problem
from driftline_service.clock import now_utc
from driftline_service.database.engine import Sessions
from driftline_service.github.sources import Sources
from driftline_service.logs import about
from driftline_service.metrics.served import Served
from driftline_service.worker_api import claiming, reports
from driftline_service.worker_api.bodies import parse, raw_body

DEFAULT_LEASE_SECONDS = 60
"""Three heartbeats a worker may miss. `app.state.settings.lease_seconds` says otherwise where it is set."""

router = APIRouter(prefix="/worker/v1", tags=["workers"], include_in_schema=False)


def bearer(authorization: Annotated[str, Header()] = "") -> str:
    scheme, _, token = authorization.partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise Problem(401, "wrong_token", "a worker's request carries its token as `Authorization: Bearer …`")
    return token


def sessions_of(request: Request) -> Sessions:
    found: Sessions = request.app.state.sessions
    return found


def lease_of(request: Request) -> timedelta:
    settings = getattr(request.app.state, "settings", None)
    return timedelta(seconds=getattr(settings, "lease_seconds", DEFAULT_LEASE_SECONDS))


Token = Annotated[str, Depends(bearer)]
Body = Annotated[bytes, Depends(raw_body)]
Factory = Annotated[Sessions, Depends(sessions_of)]
Lease = Annotated[timedelta, Depends(lease_of)]


@router.post("/jobs/{job_id}/claim", responses=problems.responses(401, 409, 422))
def claim_job(job_id: UUID, token: Token, body: Body, sessions: Factory, lease: Lease, http: Request) -> Claim:
    """Take a job. The claim token is spent if the job is given, and only then. A private repository's token goes along."""
    request = parse(ClaimRequest, body)
    with about(job_id=job_id), sessions.begin() as session:
        found = claiming.claim(session, job_id, token, request.worker, lease=lease, now=now_utc())
    if found is None:  # told after the commit, in which the job's next message was put
        raise Problem(
            409, "left_to_another", f"job {job_id} is for another worker: this one measured it, or lacks what it needs"
        )
    sources: Sources | None = getattr(http.app.state, "sources", None)
    if sources is None:
        return found
    with sessions() as session:
        return found.model_copy(update={"source_token": sources.token_for(session, found.spec.source.url)})


@router.post(
    "/attempts/{attempt_id}/lines",
    response_model_exclude_none=True,
    responses=problems.responses(401, 409, 410, 413, 422),
)
def report_lines(
    attempt_id: UUID, token: Token, body: Body, sessions: Factory, lease: Lease, request: Request
) -> Directive:
    """Store a batch of lines; one that is stored already is answered again and stored once."""
    batch = parse(LineBatch, body)
    with sessions.begin() as session:
        directive = reports.store_lines(session, attempt_id, token, batch, lease=lease, now=now_utc())
    if isinstance(served := getattr(request.app.state, "served", None), Served):
        served.lines.inc(len(batch.lines))
        served.samples.inc(sum(isinstance(line, Sample) for line in batch.lines))
    return directive


@router.post(
    "/attempts/{attempt_id}/heartbeat", response_model_exclude_none=True, responses=problems.responses(401, 410)
)
def report_heartbeat(attempt_id: UUID, token: Token, sessions: Factory, lease: Lease) -> Directive:
    """Still there."""
    with sessions.begin() as session:
        return reports.heartbeat(session, attempt_id, token, lease=lease, now=now_utc())


@router.post(
    "/attempts/{attempt_id}/finish", response_model_exclude_none=True, responses=problems.responses(401, 410, 422)
)
def report_finish(attempt_id: UUID, token: Token, body: Body, sessions: Factory) -> Directive:
    """The attempt's end. `stop` says that its success was not believed, and why."""
    end = parse(Finish, body)
    with sessions.begin() as session:
        return reports.finish(session, attempt_id, token, end, now=now_utc())
