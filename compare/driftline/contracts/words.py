"""The words of docs/glossary.md as closed sets. Columns, JSON and pages spell them exactly so."""

from enum import StrEnum


class Arm(StrEnum):
    BASE = "base"
    HEAD = "head"


class Engine(StrEnum):
    VLLM = "vllm"
    HF = "hf"


class Mode(StrEnum):
    V0 = "V0"
    V1 = "V1"


class Layout(StrEnum):
    """How a repository keeps its kernels. Runs take the first two; `mamba_ssm` is for `driftline check-kernels` alone."""

    MAMBA2_VARLEN = "mamba2_varlen"
    VLLM = "vllm"
    MAMBA_SSM = "mamba_ssm"


class RunState(StrEnum):
    QUEUED = "queued"
    BUILDING = "building"
    CHECKING = "checking"
    EVALUATING = "evaluating"
    JUDGING = "judging"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"

    @property
    def finished(self) -> bool:
        return self in (RunState.DONE, RunState.FAILED, RunState.CANCELLED, RunState.SUPERSEDED)


class JobKind(StrEnum):
    BUILD = "build"
    CHECK = "check"
    TESTS = "tests"
    EVALUATE = "evaluate"


class JobState(StrEnum):
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def finished(self) -> bool:
        return self in (JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED)


class AttemptState(StrEnum):
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LOST = "lost"
    CANCELLED = "cancelled"


class FailureKind(StrEnum):
    """Why an attempt failed. `transient` and `lost` get a new attempt; the others end the job."""

    TRANSIENT = "transient"
    LOST = "lost"
    PERMANENT = "permanent"
    UNSUPPORTED = "unsupported"

    @property
    def retried(self) -> bool:
        return self in (FailureKind.TRANSIENT, FailureKind.LOST)


class Verdict(StrEnum):
    REGRESSED = "regressed"
    NOT_COMPARABLE = "not_comparable"
    UNDERPOWERED = "underpowered"
    IMPROVED = "improved"
    EQUIVALENT = "equivalent"


VERDICTS_WORST_FIRST = (
    Verdict.REGRESSED, Verdict.NOT_COMPARABLE, Verdict.UNDERPOWERED, Verdict.IMPROVED, Verdict.EQUIVALENT,
)  # fmt: skip
"""A lane and a run take the worst verdict among their cells: the first of these that occurs."""


class Confirmed(StrEnum):
    YES = "yes"
    NO = "no"
    NOT_NEEDED = "not_needed"


class KernelCheckResult(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    WORSE_THAN_BASE = "worse_than_base"
    NOT_JUDGED = "not_judged"


class SuiteResult(StrEnum):
    """What head's own tests say beside base's. `known_failures`: what fails on head fails on base too."""

    PASSED = "passed"
    NEW_FAILURES = "new_failures"
    KNOWN_FAILURES = "known_failures"
    NOT_JUDGED = "not_judged"


class SuiteOutcome(StrEnum):
    """How one of a repository's own tests ended. `error`: its set-up, its tear-down or its file's collection."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    FLOODED = "flooded"
    SKIPPED = "skipped"
    XFAILED = "xfailed"
    XPASSED = "xpassed"
    NOT_RUN = "not_run"

    @property
    def bad(self) -> bool:
        return self in (
            SuiteOutcome.FAILED,
            SuiteOutcome.ERROR,
            SuiteOutcome.CRASHED,
            SuiteOutcome.TIMED_OUT,
            SuiteOutcome.FLOODED,
        )

    @property
    def good(self) -> bool:
        return self in (SuiteOutcome.PASSED, SuiteOutcome.XFAILED, SuiteOutcome.XPASSED)


class CaseKind(StrEnum):
    """`contract` cases decide a kernel check; `outside` cases are shown and decide nothing."""

    CONTRACT = "contract"
    OUTSIDE = "outside"


class Metric(StrEnum):
    EXACT_MATCH = "exact_match"
    LOGPROB = "logprob"
