"""The HTTP between worker and service: claim a job, report lines under a lease, finish.

POST /worker/v1/jobs/{job_id}/claim        Bearer claim token    ClaimRequest  -> Claim    (409: not to be had)
POST /worker/v1/attempts/{id}/lines        Bearer attempt token  LineBatch     -> Directive
POST /worker/v1/attempts/{id}/heartbeat    Bearer attempt token  (empty)       -> Directive
POST /worker/v1/attempts/{id}/finish       Bearer attempt token  Finish        -> Directive
Batches carry a sequence number: one that was stored already is answered again and stored once.
"""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from driftline.contracts.base import Contract, Message, Name
from driftline.contracts.channel import (
    Case,
    CheckSummary,
    Environment,
    Hello,
    KernelBuild,
    KernelTest,
    Progress,
    ReasonCode,
    Sample,
    Scores,
    TeacherForced,
    Tolerance,
)
from driftline.contracts.jobs import JobSpec
from driftline.contracts.words import FailureKind

ReportedLine = Annotated[
    Hello
    | Progress
    | Environment
    | Sample
    | TeacherForced
    | Scores
    | Case
    | CheckSummary
    | KernelBuild
    | KernelTest
    | Tolerance,
    Field(discriminator="type"),
]


class WorkerFacts(Contract):
    """Who claims: shown on pages, recorded with each attempt."""

    name: Name
    host: str
    gpu_type: str | None = None
    environment_id: str = Field(
        description="hash of the locked eval environment; baselines are reused only under the same"
    )
    sandbox: Literal["bubblewrap", "plain"]


class ClaimRequest(Contract):
    worker: WorkerFacts


class Claim(Contract):
    attempt_id: UUID
    attempt_token: str
    lease_seconds: int = Field(ge=1)
    spec: JobSpec
    source_token: str | None = Field(
        None, repr=False, description="reads a private repository, for an hour; never stored, never given to a child"
    )


class LineBatch(Contract):
    sequence: int = Field(ge=0)
    lines: list[ReportedLine] = Field(max_length=2000)


class Directive(Contract):
    """The service's answer to every report.

    `stop` without `after`: nobody waits for this attempt any more. `stop` with it: the first so many questions of the fixed
    order are enough; the child ends with those, and the attempt goes on to its finish. It is said again at every report.
    """

    action: Literal["continue", "stop"]
    reason: str = ""
    after: int | None = Field(None, ge=1)


class Finish(Contract):
    outcome: Literal["succeeded", "failed"]
    batches: int = Field(ge=0, description="how many line batches were sent; fewer stored means something was lost")
    failure_kind: FailureKind | None = None
    reason: ReasonCode | None = None
    message: Message = ""
    dropped_lines: int = Field(0, ge=0, description="lines of the child that did not validate")
    child_seconds: float = Field(0.0, ge=0)


WORKER_TASK = "driftline.work"
"""Celery task name. Arguments: job_id (str), claim_token (str). The message is a hint: it may be lost or come twice."""

QUEUE_CPU = "cpu"
"""Queue of jobs that need no GPU."""

_QUEUE_GPU = "gpu-"


def queue_of(gpu_type: str | None) -> str:
    """Where work for a GPU of this type waits; None: for work that needs none."""
    return QUEUE_CPU if gpu_type is None else f"{_QUEUE_GPU}{gpu_type}"


def gpu_type_of(queue: str) -> str | None:
    """The inverse of `queue_of`."""
    return None if queue == QUEUE_CPU else queue.removeprefix(_QUEUE_GPU)
