"""Which lines an attempt may report: those of its job's kind, about what was asked, once. A pure function of values.

What the code under test says is not believed further than this: a refused line spoils its own attempt and nothing else.
"""

import base64
import binascii
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field

from driftline.contracts.channel import (
    Case,
    CheckSummary,
    Environment,
    Hello,
    KernelBuild,
    KernelTest,
    Progress,
    Sample,
    Scores,
    TeacherForced,
    Tolerance,
)
from driftline.contracts.words import JobKind
from driftline.contracts.worker_api import ReportedLine

ALLOWED: Mapping[JobKind, tuple[type, ...]] = {
    JobKind.BUILD: (Hello, Progress, Environment, KernelBuild),
    JobKind.CHECK: (Hello, Progress, Environment, CheckSummary, Case),
    JobKind.TESTS: (Hello, Progress, Environment, KernelTest, Tolerance),
    JobKind.EVALUATE: (Hello, Progress, Environment, Sample, TeacherForced, Scores),
}

MAX_ROWS = 20_000
"""Cases, builds or tests of one attempt. A real check has some hundreds; more is a flood."""

LARGEST_INTEGER = 2**31 - 1
"""What a column `integer` holds."""

FLOAT32_BYTES = 4


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of an attempt before a batch."""

    kind: JobKind
    ranks: Mapping[int, int] = field(default_factory=dict)
    """what was asked: doc_id -> its place in the fixed order"""
    sampled: Set[int] = frozenset()
    forced: Set[int] = frozenset()
    rows: int = 0
    """cases or builds stored so far"""
    has_scores: bool = False
    has_summary: bool = False


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a batch is not stored."""

    reason: str
    message: str


def refusal(lines: Iterable[ReportedLine], known: Known) -> Refused | None:
    """The first reason not to store these lines, or None."""
    sampled, forced = set(known.sampled), set(known.forced)
    rows, scores, summaries = known.rows, int(known.has_scores), int(known.has_summary)
    for line in lines:
        if not isinstance(line, ALLOWED[known.kind]):
            return Refused("wrong_line", f"a {known.kind.value} job reports no {line.type} lines")
        if (large := _too_large(line)) is not None:
            return Refused("number_too_large", f"{line.type}: {large} is more than {LARGEST_INTEGER}")
        found: Refused | None = None
        if isinstance(line, Sample):
            found = _answer_refusal(line.doc_id, sampled, known, "sample") or _rank_refusal(line, known)
        elif isinstance(line, TeacherForced):
            found = _answer_refusal(line.doc_id, forced, known, "teacher_forced") or _logprob_refusal(line)
        rows += isinstance(line, Case | KernelBuild | KernelTest | Tolerance)
        scores += isinstance(line, Scores)
        summaries += isinstance(line, CheckSummary)
        found = found or _count_refusal(rows, scores, summaries)
        if found is not None:
            return found
    return None


def decoded_logprobs(line: TeacherForced) -> bytes | None:
    """The little-endian float32 bytes, or None if they are not one value a scored token."""
    try:
        decoded = base64.b64decode(line.logprobs, validate=True)
    except (binascii.Error, ValueError):
        return None
    return decoded if len(decoded) == FLOAT32_BYTES * (line.prompt_tokens + line.answer_tokens) else None


def _answer_refusal(doc_id: int, seen: set[int], known: Known, what: str) -> Refused | None:
    if doc_id not in known.ranks:
        return Refused("unasked_question", f"{what} of question {doc_id}, which was not asked")
    if doc_id in seen:
        return Refused("duplicate_answer", f"a second {what} of question {doc_id}")
    seen.add(doc_id)
    return None


def _rank_refusal(line: Sample, known: Known) -> Refused | None:
    place = known.ranks[line.doc_id]
    if line.rank != place:
        return Refused("wrong_rank", f"question {line.doc_id} has place {place} in the fixed order, not {line.rank}")
    return None


def _logprob_refusal(line: TeacherForced) -> Refused | None:
    if decoded_logprobs(line) is None:
        scored = line.prompt_tokens + line.answer_tokens
        return Refused("bad_logprobs", f"question {line.doc_id}: not base64 of {scored} float32 values")
    return None


def _count_refusal(rows: int, scores: int, summaries: int) -> Refused | None:
    if rows > MAX_ROWS:
        return Refused("too_many_lines", f"more than {MAX_ROWS} cases, builds or tests")
    if scores > 1 or summaries > 1:
        return Refused("duplicate_line", "scores and check_summary come once an attempt")
    return None


def _too_large(line: ReportedLine) -> int | None:
    numbers = (value for _, value in line if isinstance(value, int) and not isinstance(value, bool))
    return next((number for number in numbers if number > LARGEST_INTEGER), None)
