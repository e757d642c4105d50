"""Named queries on imports: what was reported, and which of it an admin promoted to a baseline."""

from collections.abc import Iterator, Sequence
from uuid import UUID

from driftline.evidence import SampleEvidence
from driftline.scoring.rescoring import StoredAnswer
from sqlalchemy import Select, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from driftline_service.database.storable import original
from driftline_service.database.tables import Event, Import, ImportSample, ImportScore, Job, Question, Repository, Run

READ_AHEAD = 500
"""rows a round trip: a response is some kB"""


def insert_import(session: Session, values: dict[str, object]) -> UUID | None:
    """The new import's id, or None if the same content was reported before and is not withdrawn."""
    statement = insert(Import).values(**values)
    statement = statement.on_conflict_do_nothing(
        index_elements=["content_hash"], index_where=Import.withdrawn_at.is_(None)
    )
    return session.execute(statement.returning(Import.id)).scalar_one_or_none()


def import_with_content(session: Session, content_hash: str) -> Import | None:
    """The import that holds this content, unless it was withdrawn."""
    query = select(Import).where(Import.content_hash == content_hash, Import.withdrawn_at.is_(None))
    return session.execute(query).scalar_one_or_none()


def import_by_id(session: Session, import_id: UUID) -> Import | None:
    return session.get(Import, import_id)


def lock_import(session: Session, import_id: UUID) -> Import | None:
    """The import, locked until the transaction ends."""
    query = select(Import).where(Import.id == import_id).with_for_update(key_share=True)
    return session.execute(query.execution_options(populate_existing=True)).scalar_one_or_none()


def scores_of(session: Session, import_ids: Sequence[UUID]) -> dict[UUID, list[ImportScore]]:
    """The scores of each import, by metric and filter."""
    query = select(ImportScore).where(ImportScore.import_id.in_(import_ids))
    found: dict[UUID, list[ImportScore]] = {import_id: [] for import_id in import_ids}
    for row in session.scalars(query.order_by(ImportScore.metric, ImportScore.filter.desc())):
        found[row.import_id].append(row)
    return found


def doc_ids_of(session: Session, import_id: UUID) -> set[int]:
    return set(session.scalars(select(ImportSample.doc_id).where(ImportSample.import_id == import_id)))


def stored_answers(session: Session, import_id: UUID) -> Iterator[StoredAnswer]:
    """Each question as it was reported, in order, a few at a time."""
    query = (
        select(ImportSample.doc_id, ImportSample.response, Question.target, ImportSample.scores, ImportSample.extracted)
        .join(Question, Question.content_hash == ImportSample.content_hash)
        .where(ImportSample.import_id == import_id)
        .order_by(ImportSample.doc_id)
    )
    for row in session.execute(query.execution_options(yield_per=READ_AHEAD)):
        doc_id, response, target, scores, extracted = row
        yield StoredAnswer(doc_id, original(response), original(target), scores, extracted)


def imported_samples(session: Session, import_id: UUID, ranks: dict[int, int]) -> tuple[SampleEvidence, ...]:
    """The samples of the questions that have a rank, in that order. What lm-eval does not write is unknown."""
    query = (
        select(
            ImportSample.doc_id, ImportSample.doc_hash, ImportSample.prompt_hash, ImportSample.target_hash,
            Question.question, Question.target, ImportSample.response,
        )
        .join(Question, Question.content_hash == ImportSample.content_hash)
        .where(ImportSample.import_id == import_id)
    )  # fmt: skip
    found = [
        SampleEvidence(
            doc_id=doc_id, rank=ranks[doc_id], doc_hash=doc_hash, prompt_hash=prompt_hash, target_hash=target_hash,
            question=question, target=target, response=response, finish_reason=None, prompt_tokens=None,
            response_tokens=None, left_truncated=None,
        )
        for doc_id, doc_hash, prompt_hash, target_hash, question, target, response in session.execute(query)
        if doc_id in ranks
    ]  # fmt: skip
    return tuple(sorted(found, key=lambda sample: sample.rank))


def scores_by_filter(session: Session, import_id: UUID) -> dict[str, dict[int, float]]:
    """filter -> question -> exact_match, as lm-eval scored it."""
    found: dict[str, dict[int, float]] = {}
    query = select(ImportSample.doc_id, ImportSample.scores).where(ImportSample.import_id == import_id)
    for doc_id, scores in session.execute(query):
        for name, value in scores.items():
            found.setdefault(name, {})[doc_id] = value
    return found


def promoted_import(session: Session, job: Job, environment_id: str) -> Import | None:
    """The promoted import that may stand for this base evaluation: same repository, commit, lane and environment."""
    repository = select(Repository.url).join(Run, Run.repository_id == Repository.id).where(Run.id == job.run_id)
    query = (
        select(Import)
        .where(Import.promoted_at.is_not(None), Import.commit_sha == job.commit_sha, Import.lane_hash == job.lane_hash)
        .where(Import.environment_id == environment_id, Import.repository == repository.scalar_subquery())
        .order_by(Import.promoted_at.desc())
        .limit(1)
    )
    return session.execute(query).scalar_one_or_none()


def other_baseline(session: Session, imported: Import, *, lane_hash: str, environment_id: str) -> Import | None:
    """Another promoted import that stands for the same evaluations as this one would."""
    query = select(Import).where(
        Import.promoted_at.is_not(None), Import.id != imported.id, Import.commit_sha == imported.commit_sha,
        Import.repository == imported.repository, Import.lane_hash == lane_hash,
        Import.environment_id == environment_id,
    )  # fmt: skip
    return session.scalars(query.limit(1)).one_or_none()


def list_imports(lane: str | None = None, commit: str | None = None) -> Select[Import]:
    """All imports, newest first; `commit` is the beginning of one."""
    query = select(Import).order_by(Import.created_at.desc(), Import.id.desc())
    if lane is not None:
        query = query.where(Import.lane_name == lane)
    if commit is not None:
        query = query.where(Import.commit_sha.startswith(commit))
    return query


def record_import(session: Session, import_id: UUID, kind: str, message: str) -> None:
    """Append one event of an import in the caller's transaction."""
    session.add(Event(import_id=import_id, kind=kind, message=message))


def import_events(session: Session, import_id: UUID) -> Sequence[Event]:
    """The import's log, oldest first."""
    return session.scalars(select(Event).where(Event.import_id == import_id).order_by(Event.id)).all()
