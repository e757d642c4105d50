"""The lines that a sandboxed child writes on its pipe, one JSON object a line, told apart by `type`.

The child is untrusted: a worker validates each line against these classes, drops what does not fit, and forwards the rest.
The first line is `hello`, the last `result` or `failure`; a child that ends without a last line has failed.
"""

from typing import Annotated, Literal

from pydantic import Field, StringConstraints, TypeAdapter

from driftline.contracts.base import Contract, Digest, Message, Name
from driftline.contracts.words import CaseKind, FailureKind, SuiteOutcome

MAX_LINE_BYTES = 1 << 20
"""A longer line is a flood, not a report: a full-length gsm8k response with its log-probabilities takes about 20 kB."""

Text = Annotated[str, StringConstraints(max_length=200_000)]
ReasonCode = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{1,63}$")]
Facts = dict[Annotated[str, StringConstraints(max_length=100)], Annotated[str, StringConstraints(max_length=1000)]]


class Hello(Contract):
    type: Literal["hello"] = "hello"
    protocol: Literal[1] = 1


class Progress(Contract):
    type: Literal["progress"] = "progress"
    phase: Name = Field(description="e.g. load, generate, teacher_forced, check, compile")
    done: int = Field(ge=0)
    total: int = Field(ge=0)


class Environment(Contract):
    """What the measurement ran in. Keys of `must_match` differing between arms block a comparison."""

    type: Literal["environment"] = "environment"
    must_match: Facts
    recorded: Facts


class Sample(Contract):
    """One finished response, sent as soon as it is there. `rank` is its place in the fixed order."""

    type: Literal["sample"] = "sample"
    doc_id: int = Field(ge=0)
    rank: int = Field(ge=0)
    doc_hash: Digest
    prompt_hash: Digest
    target_hash: Digest
    question: Text
    target: Text
    response: Text
    finish_reason: Literal["stop", "length"]
    prompt_tokens: int = Field(ge=0)
    response_tokens: int = Field(ge=0)
    left_truncated: bool = False


class TeacherForced(Contract):
    """Log-probabilities of one question's prompt and gold answer under the lane's own prefill schedule.

    `logprobs` is base64 of little-endian float32, one value (nats) per scored token: `prompt_tokens` of the prompt
    (its first token has no prediction and is left out), then those of the gold answer.
    """

    type: Literal["teacher_forced"] = "teacher_forced"
    doc_id: int = Field(ge=0)
    prompt_tokens: int = Field(ge=0)
    answer_tokens: int = Field(ge=0)
    logprobs: Annotated[str, StringConstraints(max_length=400_000)]


class Scores(Contract):
    """lm-eval's own result, kept to prove that driftline's scoring equals it."""

    type: Literal["scores"] = "scores"
    task_version: str
    num_fewshot: int = Field(ge=0)
    task_hash: str
    metrics: dict[str, float] = Field(description="e.g. 'exact_match,strict-match': 0.58")
    stderr: dict[str, float | None]
    right: dict[str, list[int]] = Field(description="filter name -> doc_ids that lm-eval scored 1")


class Case(Contract):
    """One kernel check case on one backend (design section 9)."""

    type: Literal["case"] = "case"
    name: Annotated[str, StringConstraints(max_length=200)]
    kind: CaseKind
    backend: Name
    passed: bool
    max_abs_err: float | None = Field(description="None when the kernel did not run or the error is not finite")
    max_rel_err: float | None
    tolerance: float
    config: Annotated[str, StringConstraints(max_length=500)] = ""
    message: Message = ""


class CheckSummary(Contract):
    """What was checked, sent once before the first case."""

    type: Literal["check_summary"] = "check_summary"
    layout: Name
    era: Name
    device: Name
    backends: list[Name]


class KernelBuild(Contract):
    """One kernel compiled ahead of time for one architecture; `error` holds the compiler's message if it did not."""

    type: Literal["kernel_build"] = "kernel_build"
    kernel: Annotated[str, StringConstraints(max_length=200)]
    config: Annotated[str, StringConstraints(max_length=500)]
    arch: Annotated[str, StringConstraints(pattern=r"^sm_[0-9]{2,3}$")]
    registers: int | None = None
    spills: int | None = Field(None, description="bytes of spill stores and loads")
    shared_memory: int | None = Field(None, description="bytes")
    compiled: bool
    error: Message = ""
    triton: Annotated[str, StringConstraints(max_length=60)] = Field("", description="release it was compiled under")


class KernelTest(Contract):
    """One of the repository's own tests; a file that could not be collected is one, with outcome `error`."""

    type: Literal["kernel_test"] = "kernel_test"
    node_id: Annotated[str, StringConstraints(min_length=1, max_length=500)]
    outcome: SuiteOutcome
    seconds: float = Field(ge=0)
    message: Message = ""


class Tolerance(Contract):
    """A number in a test file by which its author says what counts as equal."""

    type: Literal["tolerance"] = "tolerance"
    file: Annotated[str, StringConstraints(max_length=300)]
    line: int = Field(ge=1)
    scope: Annotated[str, StringConstraints(max_length=200)] = Field(
        description="function or class it stands in, or ''"
    )
    name: Annotated[str, StringConstraints(max_length=100)] = Field(description="e.g. atol")
    value: float = Field(ge=0)


class Result(Contract):
    """The last line of a child that did its work."""

    type: Literal["result"] = "result"
    lines: int = Field(ge=0, description="how many lines were sent that are results, one by one")


class Failure(Contract):
    """The last line of a child that could not. `lost` is the service's word, never a child's."""

    type: Literal["failure"] = "failure"
    kind: Literal[FailureKind.TRANSIENT, FailureKind.PERMANENT, FailureKind.UNSUPPORTED]
    reason: ReasonCode
    message: Message


Line = Annotated[
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
    | Tolerance
    | Result
    | Failure,
    Field(discriminator="type"),
]
LINE: TypeAdapter[Line] = TypeAdapter(Line)
