"""What a judgement is made from: plain values, as the service reads them from PostgreSQL or a file. No clock, no I/O."""

from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from driftline.contracts.beside import NoiseFloor
from driftline.contracts.channel import Case, CheckSummary, KernelBuild, KernelTest, Scores, Tolerance
from driftline.contracts.lane import Lane
from driftline.contracts.report import EventView, GpuDifference, JobView
from driftline.contracts.words import Arm, FailureKind, RunState


@dataclass(frozen=True, slots=True)
class SampleEvidence:
    """One question's outcome in one evaluation, as stored."""

    doc_id: int
    rank: int
    doc_hash: str
    prompt_hash: str
    target_hash: str
    question: str
    target: str
    response: str
    finish_reason: str | None
    """None, like the next three, where it is not known: lm-eval's files do not tell"""
    prompt_tokens: int | None
    response_tokens: int | None
    left_truncated: bool | None = False
    logprobs: bytes | None = None
    """little-endian float32, nats; prompt tokens first, then those of the gold answer"""
    scored_prompt_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class ForcedEvidence:
    """A question's log-probabilities where its answer was not asked: the evaluation was stopped before it."""

    doc_id: int
    logprobs: bytes
    """as SampleEvidence.logprobs"""


@dataclass(frozen=True, slots=True)
class Vouched:
    """An evaluation that was not measured here: a person reported it, and an admin vouches for what it leaves unsaid."""

    import_id: UUID
    reported_by: str
    promoted_by: str


@dataclass(frozen=True, slots=True)
class EvaluationEvidence:
    """All samples of one arm on one lane."""

    samples: tuple[SampleEvidence, ...]
    expected_doc_ids: tuple[int, ...]
    scores: Scores | None
    must_match: dict[str, str]
    recorded: dict[str, str]
    attempts: int = 1
    reused_from: UUID | None = None
    forced_only: tuple[ForcedEvidence, ...] = ()
    """questions beyond those asked; `expected_doc_ids` are those asked"""
    vouched: Vouched | None = None
    """set for an import that stands for a base arm: of its key only what it states is compared"""


@dataclass(frozen=True, slots=True)
class ArmFailure:
    """An arm that gave no evidence, and why."""

    kind: FailureKind
    reason: str
    message: str
    attempts: int = 1
    """how often it was seen: tries of this job, and of the arm's earlier jobs where it made them fail in the same way"""
    same_worker_as_base: bool = False
    """base succeeded on the same worker and environment, so the fault is the commit's"""


ArmEvidence = EvaluationEvidence | ArmFailure | None
"""None: not there yet."""


@dataclass(frozen=True, slots=True)
class LaneEvidence:
    lane: Lane
    base: ArmEvidence
    head: ArmEvidence
    identical: str | None = None
    """why both arms are byte for byte the same, if they are: then nothing was run"""
    unreachable: str | None = None
    """why no changed file can reach this lane's backend, if so"""
    noise: NoiseFloor | None = None
    fresh: tuple[EvaluationEvidence, EvaluationEvidence] | None = None
    """base and head measured once more after a first hit, to confirm it; never the cached base"""
    unfresh: str | None = None
    """of a fresh pair that was planned and is not there: why, in words"""


@dataclass(frozen=True, slots=True)
class CheckEvidence:
    summary: CheckSummary | None
    cases: tuple[Case, ...]


@dataclass(frozen=True, slots=True)
class SuiteEvidence:
    """One arm's own kernel tests and the tolerances in their files. gpu_type: of the worker; None is a CPU."""

    tests: tuple[KernelTest, ...]
    tolerances: tuple[Tolerance, ...]
    gpu_type: str | None = None
    environment_id: str = ""


@dataclass(frozen=True, slots=True)
class RunEvidence:
    """One run: head against base on a set of lanes."""

    run_id: UUID
    name: str
    repository: str
    base_sha: str
    head_sha: str
    base_subject: str
    head_subject: str
    state: RunState
    created_at: datetime
    finished_at: datetime | None
    margin: float
    lanes: tuple[LaneEvidence, ...]
    checks: dict[Arm, CheckEvidence | ArmFailure | None] = field(default_factory=dict)
    builds: dict[Arm, tuple[KernelBuild, ...] | ArmFailure | None] = field(default_factory=dict)
    build_notes: tuple[str, ...] = ()
    """releases of Triton that an arm was not compiled under, and why"""
    suites: dict[Arm, SuiteEvidence | ArmFailure | None] | None = None
    """None: no tests of the repository were asked for"""
    suite_by_gpu: tuple[GpuDifference, ...] = ()
    """tests of these commits that ended otherwise on other GPUs"""
    jobs: tuple[JobView, ...] = ()
    events: tuple[EventView, ...] = ()
