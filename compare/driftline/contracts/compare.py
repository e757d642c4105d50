"""What `driftline compare` says of two lm-eval outputs (design section 9)."""

from pydantic import Field

from driftline.contracts.base import Contract
from driftline.contracts.cell import Comparison
from driftline.contracts.words import Arm, Verdict


class Problem(Contract):
    """Something about the files that a reader must know. `code` is one of docs/compare.md."""

    code: str
    message: str = Field(description="names the input and what to do")
    blocks: bool = Field(description="whether it makes what it names not comparable; else it is a remark")
    arm: Arm | None = None
    task: str | None = Field(None, description="null: of the whole evaluation")
    metric: str | None = Field(None, description="null: of every metric")
    filter: str | None = Field(None, description="null: of every filter")


class CompareReport(Contract):
    """The JSON of `driftline compare --json`."""

    verdict: Verdict
    comparisons: list[Comparison]
    problems: list[Problem]
