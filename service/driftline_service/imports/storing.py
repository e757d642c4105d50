"""A reported evaluation becomes rows, whole or not at all. The same report twice is one import."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple, TypeVar
from uuid import UUID

from sqlalchemy import insert
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.orm import Session

from driftline_service.database import import_queries, tables
from driftline_service.database.question_hash import question_hash
from driftline_service.imports.reported import NewImport, NewSample
from driftline_service.intake.refusal import Refusal

BATCH = 250
"""samples a statement: about 1 MB of responses"""


class Stored(NamedTuple):
    """The import that holds a report; `created` if it came to be just now."""

    import_id: UUID
    created: bool


def store(session: Session, new: NewImport) -> Stored:
    """Write the report in the caller's transaction; the caller commits.

    Raises:
        Refusal: imported_elsewhere, if the same content is there for another commit or lane.
    """
    import_id = import_queries.insert_import(session, _values(new))
    if import_id is None:
        return Stored(_earlier(session, new), created=False)
    scores = [{"import_id": import_id} | score._asdict() for score in new.scores]
    session.execute(insert(tables.ImportScore), scores)
    _store_questions(session, new.samples())
    for batch in _batches(new.samples()):
        session.execute(insert(tables.ImportSample), [_row(import_id, sample) for sample in batch])
    import_queries.record_import(session, import_id, "import_reported", _told(new))
    return Stored(import_id, created=True)


def _values(new: NewImport) -> dict[str, object]:
    plain = (
        "kind", "content_hash", "lane_name", "task", "commit_sha", "repository", "reported_by", "note", "measured_at",
    )  # fmt: skip
    made: dict[str, object] = {name: getattr(new, name) for name in plain}
    return made | {"facts": dict(new.facts), "details": dict(new.details), "warnings": list(new.warnings)}


def _earlier(session: Session, new: NewImport) -> UUID:
    found = import_queries.import_with_content(session, new.content_hash)
    if found is None:
        raise Refusal(
            "import_withdrawn", "the same report was withdrawn at this very moment; send it again", status=409
        )
    if (found.commit_sha, found.lane_name) != (new.commit_sha, new.lane_name):
        raise Refusal(
            "imported_elsewhere",
            f"the same files are import {found.id} already, for commit {found.commit_sha} on lane {found.lane_name!r}; "
            "if that was wrong, withdraw it first",
            status=409,
        )
    return found.id


_Item = TypeVar("_Item")


def _batches(items: Iterable[_Item]) -> Iterator[Sequence[_Item]]:
    stream = iter(items)
    while batch := list(islice(stream, BATCH)):
        yield batch


def _store_questions(session: Session, samples: Iterable[NewSample]) -> None:
    """All at once and sorted: the order in which workers lock them too, so that no two wait for each other."""
    texts = {question_hash(sample.question, sample.target): (sample.question, sample.target) for sample in samples}
    for batch in _batches(sorted(texts)):
        rows = [{"content_hash": key, "question": texts[key][0], "target": texts[key][1]} for key in batch]
        session.execute(upsert(tables.Question).on_conflict_do_nothing(), rows)


def _row(import_id: UUID, sample: NewSample) -> dict[str, object]:
    plain = ("doc_id", "doc_hash", "prompt_hash", "target_hash", "response")
    return {name: getattr(sample, name) for name in plain} | {
        "import_id": import_id, "content_hash": question_hash(sample.question, sample.target),
        "scores": dict(sample.scores), "extracted": dict(sample.extracted),
    }  # fmt: skip


def _told(new: NewImport) -> str:
    about = f"{new.commit_sha} on {new.lane_name}"
    warned = f"; {len(new.warnings)} warnings" if new.warnings else ""
    return f"{new.reported_by} reported {new.kind.value} of {about}{warned}" + (f": {new.note}" if new.note else "")
