"""POST /github/webhook: checks the signature of the raw body, keeps the delivery once, answers. Nothing is done here."""

import json
from typing import Annotated

from driftline.contracts.base import Contract
from fastapi import APIRouter, Header, Request
from starlette.concurrency import run_in_threadpool

from driftline_service.api import problems
from driftline_service.api.context import Context, ContextDep
from driftline_service.api.problems import Problem
from driftline_service.database import github_queries
from driftline_service.database.storable import storable_json
from driftline_service.github.signature import is_signed
from driftline_service.logs import logger

router = APIRouter(tags=["github"])

PATH = "/github/webhook"
LONGEST_ID = 100
_log = logger("driftline.github")


class Accepted(Contract):
    """kept: false if this very delivery was here before."""

    delivery: str
    kept: bool


@router.post(PATH, status_code=202, responses=problems.responses(400, 401, 404, 413, 503))
async def receive(
    request: Request, found: ContextDep,
    x_hub_signature_256: Annotated[str | None, Header()] = None,
    x_github_event: Annotated[str, Header(max_length=LONGEST_ID)] = "",
    x_github_delivery: Annotated[str, Header(max_length=LONGEST_ID)] = "",
) -> Accepted:  # fmt: skip
    """A webhook of the GitHub App. It is answered at once; what follows from it is done by a process of its own."""
    secret = found.settings.github_webhook_secret
    if secret is None:
        raise Problem(404, "no_github", "this service has no GitHub App; docs/github.md says how to set one up")
    body = await request.body()
    if not is_signed(body, x_hub_signature_256, secret.get_secret_value()):
        _log.warning("webhook_refused", delivery=x_github_delivery, bytes=len(body))
        raise Problem(401, "wrong_signature", "X-Hub-Signature-256 is not that of this body under the App's secret")
    if not x_github_event or not x_github_delivery:
        raise Problem(400, "malformed", "a webhook names itself in X-GitHub-Event and X-GitHub-Delivery")
    kept = await run_in_threadpool(_keep, found, x_github_delivery, x_github_event, body)
    return Accepted(delivery=x_github_delivery, kept=kept)


def _keep(found: Context, delivery: str, event: str, body: bytes) -> bool:
    try:
        payload = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise Problem(400, "malformed", "the body is no JSON; set the webhook's content type to JSON") from error
    if not isinstance(payload, dict):
        raise Problem(400, "malformed", "the body is no JSON object")
    with found.sessions.begin() as session:
        return github_queries.keep_delivery(session, delivery, event, storable_json(payload))
