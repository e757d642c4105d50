"""What a worker is asked to do. A worker turns a spec into a child's input; it never decides what is measured."""

from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from driftline.contracts.base import Contract, Sha
from driftline.contracts.kernel_jobs import Suite, TritonRelease
from driftline.contracts.lane import Lane
from driftline.contracts.words import Arm, Layout


class CommitSource(Contract):
    """The code under test: a pinned commit of a repository and where its kernels are."""

    url: str
    sha: Sha
    layout: Layout
    kernel_path: str = Field(description="the kernels' folder inside the tree, e.g. kernels/src/mamba2_varlen")


class BuildSpec(Contract):
    kind: Literal["build"] = "build"
    job_id: UUID
    run_id: UUID
    arm: Arm
    source: CommitSource
    architectures: list[int] = Field(default=[80, 90, 100])
    tritons: list[TritonRelease] = Field(default=[], description="empty: the evaluation environment's own alone")


class CheckSpec(Contract):
    kind: Literal["check"] = "check"
    job_id: UUID
    run_id: UUID
    arm: Arm
    source: CommitSource
    backends: list[str] = Field(default=["torch", "triton"])


class SuiteSpec(Contract):
    """Run the repository's own kernel tests."""

    kind: Literal["tests"] = "tests"
    job_id: UUID
    run_id: UUID
    arm: Arm
    source: CommitSource
    suite: Suite


class EvaluateSpec(Contract):
    kind: Literal["evaluate"] = "evaluate"
    job_id: UUID
    run_id: UUID
    arm: Arm
    source: CommitSource
    lane: Lane
    doc_ids: list[int] = Field(description="the questions, in the fixed order")
    block: int = Field(100, ge=1, description="questions looked at together; a block is never left half done")
    batch_size: int = Field(16, ge=1)


JobSpec = Annotated[BuildSpec | CheckSpec | SuiteSpec | EvaluateSpec, Field(discriminator="kind")]
