"""Admitted lines become rows of their attempt. What may be stored was decided in admission.py."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from driftline.contracts.channel import (
    Case,
    CheckSummary,
    Environment,
    KernelBuild,
    KernelTest,
    Progress,
    Sample,
    Scores,
    TeacherForced,
    Tolerance,
)
from driftline.contracts.worker_api import ReportedLine
from sqlalchemy import insert
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import Session

from driftline_service.database import tables
from driftline_service.database.copying import copy_rows
from driftline_service.database.question_hash import question_hash
from driftline_service.database.tables import Attempt
from driftline_service.worker_api.admission import decoded_logprobs


def store(session: Session, attempt: Attempt, lines: Sequence[ReportedLine], *, rows_before: int) -> None:
    """Write the lines in the caller's transaction; `rows_before` cases or builds of the attempt are stored already."""
    _store_samples(session, attempt, [line for line in lines if isinstance(line, Sample)])
    copy_rows(
        session, tables.TeacherForced, [_forced_row(attempt, line) for line in lines if isinstance(line, TeacherForced)]
    )
    cases = [_numbered(attempt.id, rows_before, line) for line in _enumerated(lines, Case)]
    builds = [_numbered(attempt.id, rows_before, line) for line in _enumerated(lines, KernelBuild)]
    tests = [_numbered(attempt.id, rows_before, line) for line in _enumerated(lines, KernelTest)]
    tolerances = [_numbered(attempt.id, rows_before, line) for line in _enumerated(lines, Tolerance)]
    for table, rows in (
        (tables.KernelCase, cases), (tables.KernelBuild, builds),
        (tables.KernelTest, tests), (tables.TestTolerance, tolerances),
    ):  # fmt: skip
        if rows:
            session.execute(insert(table), rows)
    for line in lines:
        _note(attempt, line)


def _note(attempt: Attempt, line: ReportedLine) -> None:
    """Lines of which the attempt itself keeps the latest."""
    match line:
        case Progress():
            attempt.phase, attempt.done, attempt.total = line.phase, line.done, line.total
        case Environment():
            attempt.must_match = (attempt.must_match or {}) | line.must_match
            attempt.recorded = (attempt.recorded or {}) | line.recorded
        case Scores():
            attempt.scores = line.model_dump(mode="json")
        case CheckSummary():
            attempt.check_summary = line.model_dump(mode="json")


def _store_samples(session: Session, attempt: Attempt, lines: Sequence[Sample]) -> None:
    if not lines:
        return
    contents = {_content_hash(line): {"question": line.question, "target": line.target} for line in lines}
    questions = [{"content_hash": key} | contents[key] for key in sorted(contents)]  # one lock order for all writers
    session.execute(upsert(tables.Question).on_conflict_do_nothing(), questions)
    excluded = {"type", "question", "target"}
    rows = [
        _place(attempt) | {"content_hash": _content_hash(line)} | line.model_dump(exclude=excluded) for line in lines
    ]
    copy_rows(session, tables.Sample, rows)


def _place(attempt: Attempt) -> dict[str, Any]:
    return {"attempt_id": attempt.id, "month": attempt.month}


def _content_hash(line: Sample) -> str:
    return question_hash(line.question, line.target)


def _forced_row(attempt: Attempt, line: TeacherForced) -> dict[str, Any]:
    logprobs = decoded_logprobs(line)
    row = {"doc_id": line.doc_id, "logprobs": logprobs, "scored_prompt_tokens": line.prompt_tokens}
    return _place(attempt) | row


def _enumerated(lines: Iterable[ReportedLine], kind: type[ReportedLine]) -> list[tuple[int, Any]]:
    return list(enumerate(line for line in lines if isinstance(line, kind)))


def _numbered(attempt_id: UUID, before: int, numbered: tuple[int, ReportedLine]) -> dict[str, Any]:
    place, line = numbered
    return {"attempt_id": attempt_id, "position": before + place} | line.model_dump(exclude={"type"})
