"""What readers get: the run report (design section 9) and the fuller view behind page and Markdown.

`RunReport` is the public JSON. `RunView` holds everything a page or a Markdown report shows; both come from the same
judgement (driftline.judge), so they can never disagree.
"""

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from driftline.contracts.base import Contract, Sha, Share
from driftline.contracts.beside import Divergence, FormatDrift, NoiseFloor
from driftline.contracts.cell import CellView, Comparison
from driftline.contracts.impact import ImpactView
from driftline.contracts.words import (
    Arm,
    CaseKind,
    Confirmed,
    Engine,
    JobKind,
    JobState,
    KernelCheckResult,
    Mode,
    RunState,
    SuiteOutcome,
    SuiteResult,
    Verdict,
)  # fmt: skip


class LaneReport(Contract):
    name: str
    engine: Engine
    mode: Mode
    backend: str
    verdict: Verdict
    confirmed: Confirmed
    unstable: bool
    comparisons: list[Comparison]


class KernelCheckReport(Contract):
    result: KernelCheckResult
    failed_cases: list[str]


class SuiteReport(Contract):
    """What the repository's own kernel tests said."""

    result: SuiteResult
    new_failures: list[str]


class RunReport(Contract):
    name: str
    base: Sha
    head: Sha
    verdict: Verdict
    kernel_check: KernelCheckReport
    suite: SuiteReport | None = Field(default=None, description="null: none were asked for")
    lanes: list[LaneReport]


class ArmScore(Contract):
    """One row of lm-eval's own table, for one arm."""

    arm: Arm
    task: str
    version: str
    filter: str
    n_shot: int
    metric: str
    value: float
    stderr: float | None


class ArmHealth(Contract):
    """What the model said and what it did not, for one arm of a lane."""

    arm: Arm
    questions: int
    missing: int
    duplicates: int
    left_truncated: int | None = Field(description="None where it is not known, as of an imported evaluation")
    mean_mismatch: bool = Field(description="driftline's recomputed mean differs from lm-eval's")
    length_stops: int | None
    invalid: dict[str, int] = Field(description="filter -> answers from which nothing was extracted")
    attempts: int
    reused_from: UUID | None = Field(None, description="run whose evaluation this arm reuses as a baseline")
    imported_from: UUID | None = Field(None, description="import that an admin promoted to stand for this arm")
    failure: str | None = Field(None, description="reason code and message if this arm could not be evaluated")


class KeyDifference(Contract):
    field: str
    base: str | None
    head: str | None
    blocks: bool


class LaneView(Contract):
    """A lane on the page. `verdict` is None while an arm is still to come."""

    name: str
    model: str
    engine: Engine
    mode: Mode
    mode_label: str = Field(description="e.g. 'V0 (hf: whole prompt)'; never a bare V0 for engine hf")
    backend: str
    task: str
    verdict: Verdict | None
    broken: bool = False
    unsupported: str | None = None
    confirmed: Confirmed
    unstable: bool
    reasons: list[str] = Field(description="sentences, most important first")
    comparisons: list[CellView]
    scores: list[ArmScore]
    health: list[ArmHealth]
    divergence: Divergence | None
    format_drift: FormatDrift | None = None
    noise: NoiseFloor | None
    key_differences: list[KeyDifference]
    changed_answers: int | None


class CaseView(Contract):
    """One kernel check case, both arms side by side."""

    name: str
    kind: CaseKind
    backend: str
    tolerance: float
    base_passed: bool | None
    head_passed: bool | None
    base_error: float | None
    head_error: float | None
    ratio: float | None = Field(None, description="head error / base error, where both are known and base's is not 0")
    config: str
    message: str


class KernelCheckView(Contract):
    result: KernelCheckResult
    reason: str = ""
    device: str | None = None
    failed_cases: list[str]
    cases: list[CaseView]


class BuildView(Contract):
    """One kernel x config x architecture, both arms side by side. None where that arm did not compile or does not have it."""

    kernel: str
    config: str
    arch: str
    base_registers: int | None
    head_registers: int | None
    base_spills: int | None
    head_spills: int | None
    base_shared_memory: int | None
    head_shared_memory: int | None
    base_error: str = ""
    head_error: str = ""
    triton: str = Field("", description="release of Triton it was compiled under")


class SuiteTestView(Contract):
    """One of the repository's own tests, both arms side by side. None: that arm has no such test."""

    node_id: str
    base: SuiteOutcome | None
    head: SuiteOutcome | None
    message: str = ""


class GpuDifference(Contract):
    """A test that fails on one type of GPU and passes on another."""

    node_id: str
    here: str
    here_outcome: SuiteOutcome
    there: str
    there_outcome: SuiteOutcome
    commit: Sha = Field(description="the one measured there")


class LoosenedTolerance(Contract):
    """A tolerance that head's test files have larger than base's. Lines are head's and base's own."""

    file: str
    line: int
    scope: str
    name: str
    base_value: float
    head_value: float
    base_line: int


class SuiteView(Contract):
    """The repository's own kernel tests on both arms."""

    result: SuiteResult
    reason: str = ""
    base_gpu: str | None = None
    head_gpu: str | None = None
    base_counts: dict[SuiteOutcome, int] = Field(default_factory=dict)
    head_counts: dict[SuiteOutcome, int] = Field(default_factory=dict)
    new_failures: list[SuiteTestView] = Field(default=[], description="fail on head and not on base")
    known_failures: list[SuiteTestView] = Field(default=[], description="fail on both")
    fixed: list[SuiteTestView] = Field(default=[], description="fail on base, pass on head")
    newly_skipped: list[SuiteTestView] = Field(default=[], description="ran on base, skipped on head")
    removed: list[SuiteTestView] = Field(default=[], description="on base and no more on head")
    added: int = 0
    by_gpu: list[GpuDifference] = Field(default=[], description="ended otherwise on another type of GPU")
    loosened: list[LoosenedTolerance] = Field(default=[], description="larger in head's test files")


class JobView(Contract):
    job_id: UUID
    kind: JobKind
    arm: Arm
    lane: str | None
    pair: int = Field(0, ge=0, description="which pair of evaluations of the lane; the first decides")
    state: JobState
    attempts: int
    phase: str | None = None
    done: int | None = None
    total: int | None = None
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class EventView(Contract):
    at: datetime
    kind: str
    message: str


class Headline(Contract):
    """The verdict in a sentence and the colour of the check run."""

    color: Literal["green", "red", "neutral", "grey"]
    sentence: str


class RunView(Contract):
    """Everything page and Markdown show of one run."""

    run_id: UUID
    name: str
    repository: str
    base: Sha
    head: Sha
    base_subject: str
    head_subject: str
    state: RunState
    created_at: datetime
    finished_at: datetime | None
    margin: Share
    method_version: str
    inputs_hash: str
    verdict: Verdict | None
    headline: Headline
    kernel_check: KernelCheckView
    lanes: list[LaneView]
    builds: list[BuildView]
    build_notes: list[str] = Field(
        default=[], description="releases of Triton that an arm was not compiled under, and why"
    )
    suite: SuiteView | None = Field(default=None, description="None: no tests of the repository were asked for")
    jobs: list[JobView]
    events: list[EventView]
    impact: ImpactView | None = Field(None, description="what the change reaches, by the imports at head")
    remaining_seconds: float | None = Field(
        default=None,
        ge=0,
        description="of an unfinished run, from how long such jobs took before; other runs not counted",
    )


class ChangedSample(Contract):
    """One question whose response or correctness differs between arms."""

    lane: str
    doc_id: int
    question: str
    target: str
    base_response: str
    head_response: str
    base_right: dict[str, bool]
    head_right: dict[str, bool]
    first_different_word: int | None
    logprob_move: float | None = Field(description="largest move of one teacher-forced token, nats")
