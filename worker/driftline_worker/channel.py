"""Judges a child's lines: valid, of its job's kind, asked for, sent once. A child is untrusted: nothing is repaired."""

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Self

from driftline.contracts.channel import (
    LINE,
    Case,
    CheckSummary,
    Environment,
    Failure,
    Hello,
    KernelBuild,
    KernelTest,
    Line,
    Progress,
    Result,
    Sample,
    Scores,
    TeacherForced,
    Tolerance,
)  # fmt: skip
from driftline.contracts.jobs import EvaluateSpec, JobSpec
from driftline.contracts.words import JobKind
from driftline.contracts.worker_api import ReportedLine
from pydantic import ValidationError

MOST_DROPPED = 20
"""A child that says more nonsense than this is not talking to us."""

BYTES_BESIDE_QUESTIONS = 32 << 20
BYTES_PER_QUESTION = 1 << 20
"""A question's sample and log-probabilities take 20 kB in gsm8k; both contracts' own caps are below this."""

LINES_BESIDE_QUESTIONS = 50_000
LINES_PER_QUESTION = 20
"""Cases times backends, kernels times configurations, and progress."""

KINDS: dict[JobKind, tuple[type[Line], ...]] = {
    JobKind.BUILD: (Environment, KernelBuild),
    JobKind.CHECK: (Environment, CheckSummary, Case),
    JobKind.TESTS: (Environment, KernelTest, Tolerance),
    JobKind.EVALUATE: (Environment, Sample, TeacherForced, Scores),
}
LARGEST_INTEGER = 2**31 - 1
"""What a database column holds. No honest count comes near."""

FLOAT32_BYTES = 4
COUNTED = (Sample, TeacherForced, Case, KernelBuild, KernelTest, Tolerance)


@dataclass(frozen=True, slots=True)
class Expected:
    """What a job's child may say."""

    kind: JobKind
    ranks: Mapping[int, int] = field(default_factory=dict)
    """question -> its place in the fixed order"""
    architectures: frozenset[str] = frozenset()

    @classmethod
    def of(cls, spec: JobSpec) -> Self:
        questions = spec.doc_ids if isinstance(spec, EvaluateSpec) else []
        architectures = [f"sm_{number}" for number in getattr(spec, "architectures", ())]
        return cls(JobKind(spec.kind), {one: rank for rank, one in enumerate(questions)}, frozenset(architectures))

    @property
    def total_bytes(self) -> int:
        return BYTES_BESIDE_QUESTIONS + BYTES_PER_QUESTION * len(self.ranks)

    @property
    def total_lines(self) -> int:
        return LINES_BESIDE_QUESTIONS + LINES_PER_QUESTION * len(self.ranks)


class Judge:
    """Takes lines one by one. `last` is the child's own ending, once it came."""

    def __init__(self, expected: Expected) -> None:
        self._expected = expected
        self._seen: set[tuple[object, ...]] = set()
        self.greeted = False
        self.last: Result | Failure | None = None
        self.accepted = 0
        self.results = 0
        self.dropped = 0
        self.first_fault = ""
        self.phase = ""
        self.whereabouts = "it said hello and nothing since"

    def take(self, raw: bytes) -> ReportedLine | None:
        """The line if it is to be reported; None if it is an ending or dropped."""
        try:
            line = LINE.validate_json(raw)
        except ValidationError as error:
            reason = error.errors(include_url=False, include_input=False)[0]["msg"]
            self._drop(f"no line of the contract: {reason}")
            return None
        fault = self._fault(line)
        if fault is not None:
            self._drop(fault)
            return None
        self.accepted += 1
        self.results += isinstance(line, COUNTED)
        match line:
            case Hello():
                self.greeted = True
                return line
            case Result() | Failure():
                self.last = line
                return None
            case Progress():
                self.phase = line.phase
                self.whereabouts = f"it was last heard in phase {line.phase}, at {line.done} of {line.total}"
                return line
            case _:
                return line

    @property
    def garbage(self) -> bool:
        return self.dropped > MOST_DROPPED

    @property
    def too_many(self) -> bool:
        return self.accepted > self._expected.total_lines

    def _fault(self, line: Line) -> str | None:
        """Why a valid line is not believed."""
        if self.last is not None:
            return f"a {line.type} line after the last one"
        if isinstance(line, Hello):
            return "a second hello" if self.greeted else None
        if not self.greeted:
            return f"a {line.type} line before hello"
        if isinstance(line, Progress | Result | Failure):
            return None
        if not isinstance(line, KINDS[self._expected.kind]):
            return f"a {line.type} line in a {self._expected.kind} job"
        if any(isinstance(value, int) and value > LARGEST_INTEGER for _, value in line):
            return f"a {line.type} line with a number above {LARGEST_INTEGER}"
        return self._not_asked(line) or self._repeated(line)

    def _not_asked(self, line: ReportedLine) -> str | None:
        match line:
            case Sample() | TeacherForced() if line.doc_id not in self._expected.ranks:
                return f"a {line.type} line for question {line.doc_id}, which was not asked"
            case Sample() if line.rank != self._expected.ranks[line.doc_id]:
                return f"question {line.doc_id} at place {line.rank}, where it is not"
            case TeacherForced() if not _one_value_a_token(line):
                return f"question {line.doc_id} with log-probabilities that are not one float32 a token"
            case KernelBuild():
                asked = line.arch in self._expected.architectures
                return None if asked else f"a kernel built for {line.arch}, which was not asked"
            case _:
                return None

    def _repeated(self, line: ReportedLine) -> str | None:
        identity = _identity(line)
        if identity in self._seen:
            return f"a second {' '.join(map(str, identity))}"
        self._seen.add(identity)
        return None

    def _drop(self, fault: str) -> None:
        self.dropped += 1
        self.first_fault = self.first_fault or fault


def _one_value_a_token(line: TeacherForced) -> bool:
    try:
        values = base64.b64decode(line.logprobs, validate=True)
    except binascii.Error:
        return False
    return len(values) == FLOAT32_BYTES * (line.prompt_tokens + line.answer_tokens)


def _identity(line: ReportedLine) -> tuple[object, ...]:
    """What may come only once."""
    match line:
        case Sample() | TeacherForced():
            return (line.type, line.doc_id)
        case Case():
            return (line.type, line.name, line.backend, line.config)
        case KernelBuild():
            return (line.type, line.kernel, line.config, line.arch, line.triton)
        case KernelTest():
            return (line.type, line.node_id)
        case Tolerance():
            return (line.type, line.file, line.line, line.scope, line.name, line.value)
        case _:
            return (line.type,)
