"""The service from a worker's side: four requests, asked again while the service is away. No decision is taken here."""

import random
import threading
import time
from typing import TypeVar
from uuid import UUID

import httpx
from driftline.contracts.base import Contract
from driftline.contracts.worker_api import Claim, ClaimRequest, Directive, Finish, LineBatch, WorkerFacts
from pydantic import ValidationError

REQUEST_SECONDS = 30.0
FIRST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0
GONE = frozenset({401, 403, 404, 409, 410})
"""The job is not to be had, or the lease is over: another attempt has taken its place, or will."""

_Answer = TypeVar("_Answer", bound=Contract)


class Gone(Exception):  # noqa: N818 - what it is
    """The service does not want this attempt any more. Nothing is wrong."""


class Refused(Exception):  # noqa: N818 - what it is
    """The service does not understand what it was sent, or we its answer: versions differ. The message names both."""


class Unreachable(Exception):  # noqa: N818 - what it is
    """The service did not answer for as long as it is waited for."""


class ServiceClient:
    """Safe to share between threads. Once `hurry` is set nothing is asked twice."""

    def __init__(self, url: str, *, retry_seconds: float, hurry: threading.Event) -> None:
        self._http = httpx.Client(base_url=url, timeout=REQUEST_SECONDS)
        self._retry_seconds = retry_seconds
        self._hurry = hurry

    def close(self) -> None:
        self._http.close()

    def claim(self, job_id: UUID, claim_token: str, facts: WorkerFacts) -> Claim:
        """Raises Gone if the job is not to be had, else as all requests here do."""
        path = f"/worker/v1/jobs/{job_id}/claim"
        return self._post(path, claim_token, ClaimRequest(worker=facts), answer=Claim)

    def lines(self, attempt_id: UUID, token: str, batch: LineBatch) -> Directive:
        return self._post(f"/worker/v1/attempts/{attempt_id}/lines", token, batch, answer=Directive)

    def heartbeat(self, attempt_id: UUID, token: str) -> Directive:
        return self._post(f"/worker/v1/attempts/{attempt_id}/heartbeat", token, None, answer=Directive)

    def finish(self, attempt_id: UUID, token: str, finish: Finish) -> Directive:
        return self._post(f"/worker/v1/attempts/{attempt_id}/finish", token, finish, answer=Directive)

    def _post(self, path: str, token: str, body: Contract | None, *, answer: type[_Answer]) -> _Answer:
        """Ask until there is an answer.

        Raises:
            Gone, Refused, Unreachable.
        """
        content = b"" if body is None else body.model_dump_json().encode()
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        deadline, pause = time.monotonic() + self._retry_seconds, FIRST_PAUSE_SECONDS
        while True:
            trouble = ""
            try:
                response = self._http.post(path, content=content, headers=headers)
                if response.status_code < 500 and response.status_code != 429:
                    return _read(response, answer)
                trouble = f"status {response.status_code}"
            except httpx.TransportError as error:
                trouble = f"{type(error).__name__}: {error}"
            except RuntimeError as error:  # a beat that was under way when the worker was done
                if not self._http.is_closed:
                    raise
                raise Unreachable("the worker has said its last word") from error
            if self._hurry.is_set() or time.monotonic() + pause > deadline:
                raise Unreachable(f"{self._http.base_url} did not answer: {trouble}")
            self._hurry.wait(pause * random.uniform(0.5, 1.0))  # noqa: S311 - so that workers do not knock together
            pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def _read(response: httpx.Response, answer: type[_Answer]) -> _Answer:
    if response.status_code in GONE:
        raise Gone(f"status {response.status_code}: {response.text[:200]}")
    if not response.is_success:
        raise Refused(f"{response.url.path} answered {response.status_code}: {response.text[:500]}")
    try:
        return answer.model_validate_json(response.content)
    except ValidationError as error:
        raise Refused(f"{response.url.path} answered what this worker does not understand: {error}") from error
