"""A search for the commit from which a lane is worse: what is asked for, and what readers get of it."""

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from pydantic import Field

from driftline.contracts.base import Contract, Name, Sha, Share
from driftline.contracts.words import RunState, Verdict


class BisectState(StrEnum):
    RUNNING = "running"
    FOUND = "found"
    INCONCLUSIVE = "inconclusive"
    CANCELLED = "cancelled"

    @property
    def finished(self) -> bool:
        return self is not BisectState.RUNNING


class StepOutcome(StrEnum):
    """`skipped`: the commit could not be told good or bad; its neighbours are tried."""

    GOOD = "good"
    BAD = "bad"
    SKIPPED = "skipped"


class BisectCommit(Contract):
    """One commit that may be tried, as it was when the search was asked for."""

    sha: Sha
    subject: str
    kernel_path: str = Field("", description="the kernels' folder inside the tree")
    kernel_tree: str = Field("", description="equal ids are byte-identical code, and get one and the same outcome")
    unusable: str | None = Field(None, description="why it cannot be measured, if so")


class BisectStepView(Contract):
    number: int
    sha: Sha
    subject: str
    run_id: UUID
    run_state: RunState
    verdict: Verdict | None
    outcome: StepOutcome | None
    why: str
    questions: int = Field(ge=0, description="asked of both arms for this step; what was known before costs nothing")


class BisectView(Contract):
    """A search as page and command line show it."""

    bisect_id: UUID
    url: str
    repository: str
    lane: Name
    good: Sha
    bad: Sha
    margin: Share
    state: BisectState
    first_bad: Sha | None
    first_bad_subject: str | None
    message: str
    commits: int = Field(ge=1, description="first-parent commits after good, up to bad")
    remaining: int = Field(ge=0, description="of them, those that may still be the first bad one")
    questions: int = Field(ge=0, description="asked for all steps")
    steps: list[BisectStepView]
    created_by: str
    created_at: datetime
    finished_at: datetime | None


class BisectList(Contract):
    bisects: list[BisectView]
    next: str | None = Field(None, description="path of the next page, if there are more")
