"""POST /github/webhook: checks the signature of the raw body, keeps the delivery once, answers. Nothing is done here.

GitHub comes in storms and hangs up after 10 s, so what a request costs counts: it stays in the event loop, is given to
PostgreSQL as it came, and passes none of FastAPI's parsing (`Bare`).
"""

import json
import re
from collections.abc import Callable, Coroutine
from typing import Any, cast

from driftline.contracts.base import Contract
from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute
from psycopg import DataError
from psycopg.errors import ProgramLimitExceeded, StatementTooComplex
from starlette.concurrency import run_in_threadpool

from driftline_service.api import problems
from driftline_service.api.context import context
from driftline_service.api.problems import Problem
from driftline_service.database.storable import ESCAPE, storable_json
from driftline_service.github.deliveries import Delivery, ReplayError
from driftline_service.github.signature import is_signed
from driftline_service.logs import logger

PATH = "/github/webhook"
LONGEST_ID = 100

SIGNATURE, EVENT, DELIVERY = "X-Hub-Signature-256", "X-GitHub-Event", "X-GitHub-Delivery"
HEADERS = [
    {"name": name, "in": "header", "required": True, "schema": {"type": "string", "maxLength": longest}}
    for name, longest in ((SIGNATURE, 71), (EVENT, LONGEST_ID), (DELIVERY, LONGEST_ID))
]
PAYLOAD = {"required": True, "content": {"application/json": {"schema": {"type": "object"}}}}

SUSPECT = re.compile(rf"\\u(?:0000|[dD][89a-fA-F]|241[bB])|{ESCAPE}")
"""What may be a NUL, half a surrogate pair or the escape itself, in JSON's spelling."""

_log = logger("driftline.github")


class Accepted(Contract):
    """kept: false if this very delivery was here before."""

    delivery: str
    kept: bool


class Bare(APIRoute):
    """A route whose endpoint takes the request as it is. What it reads is described by hand."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        return cast(Callable[[Request], Coroutine[Any, Any, Response]], self.endpoint)


router = APIRouter(tags=["github"], route_class=Bare)


@router.post(
    PATH, status_code=202, response_model=Accepted, responses=problems.responses(400, 401, 404, 409, 413, 503),
    openapi_extra={"parameters": HEADERS, "requestBody": PAYLOAD},
)  # fmt: skip
async def receive(request: Request) -> Response:
    """A webhook of the GitHub App. It is answered at once; what follows from it is done by a process of its own."""
    found = context(request)
    secret = found.settings.github_webhook_secret
    if secret is None:
        raise Problem(404, "no_github", "this service has no GitHub App; docs/github.md says how to set one up")
    body = await request.body()
    event, delivery = (request.headers.get(name, "") for name in (EVENT, DELIVERY))
    signature = request.headers.get(SIGNATURE, "")
    if not is_signed(body, signature, secret.get_secret_value()):
        _log.warning("webhook_refused", delivery=delivery[:LONGEST_ID], bytes=len(body))
        raise Problem(401, "wrong_signature", "X-Hub-Signature-256 is not that of this body under the App's secret")
    if not 0 < len(event) <= LONGEST_ID or not 0 < len(delivery) <= LONGEST_ID:
        detail = f"a webhook names itself in {EVENT} and {DELIVERY}, in at most {LONGEST_ID} letters each"
        raise Problem(400, "malformed", detail)
    try:
        kept = await found.deliveries.keep(Delivery(delivery, event, signature, await storable_payload(body)))
    except ReplayError as error:
        _log.warning("webhook_replayed", delivery=delivery, event_name=event)
        detail = "this very body was delivered before under another id; GitHub keeps the id when it delivers again"
        raise Problem(409, "replayed", detail) from error
    except (DataError, ProgramLimitExceeded, StatementTooComplex) as error:
        raise Problem(400, "malformed", "the body is no JSON; set the webhook's content type to JSON") from error
    return Response(
        Accepted(delivery=delivery, kept=kept).model_dump_json(), status_code=202, media_type="application/json"
    )


async def storable_payload(body: bytes) -> str:
    """The body as it came, for PostgreSQL to read; only one that may hold what PostgreSQL cannot is read here, in a thread.

    Raises:
        Problem: 400 if it is no object or not in UTF-8, or if what was read is no JSON.
    """
    try:
        text = body.decode()
        if not text.lstrip(" \t\r\n").startswith("{"):
            raise Problem(400, "malformed", "the body is no JSON object")
        suspect = ("\\u" in text or ESCAPE in text) and SUSPECT.search(text)  # two quick looks before the slow one
        return await run_in_threadpool(_escaped, text) if suspect else text
    except (ValueError, RecursionError) as error:
        raise Problem(400, "malformed", "the body is no JSON; set the webhook's content type to JSON") from error


def _escaped(text: str) -> str:
    return json.dumps(storable_json(json.loads(text)))
