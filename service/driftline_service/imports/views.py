"""Rows of imports as readers see them."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from driftline.contracts.imports import ImportDetail, ImportedScore, ImportView, Promotion
from driftline.contracts.report import EventView
from sqlalchemy.orm import Session

from driftline_service.database import import_queries
from driftline_service.database.tables import Import, ImportScore
from driftline_service.imports.promotion import unknown_import


def import_views(session: Session, rows: Sequence[Import], public_url: str) -> list[ImportView]:
    """The rows with their scores, in their order."""
    scores = import_queries.scores_of(session, [row.id for row in rows])
    return [_view(row, scores[row.id], public_url) for row in rows]


def import_view(session: Session, import_id: UUID, public_url: str) -> ImportView:
    """One import.

    Raises:
        Refusal: unknown_import.
    """
    return import_views(session, [_known(session, import_id)], public_url)[0]


def import_detail(session: Session, import_id: UUID, public_url: str) -> ImportDetail:
    """One import with what its files state and its log.

    Raises:
        Refusal: unknown_import.
    """
    row = _known(session, import_id)
    events = import_queries.import_events(session, import_id)
    return ImportDetail(
        imported=import_views(session, [row], public_url)[0], facts=row.facts, details=row.details,
        events=[EventView(at=event.at, kind=event.kind, message=event.message) for event in events],
    )  # fmt: skip


def imported_scores(scores: Iterable[ImportScore]) -> list[ImportedScore]:
    return [
        ImportedScore(
            metric=score.metric, filter=score.filter, value=score.value, stderr=score.stderr, questions=score.questions
        )
        for score in scores
    ]


def _known(session: Session, import_id: UUID) -> Import:
    row = import_queries.import_by_id(session, import_id)
    if row is None:
        raise unknown_import(import_id)
    return row


def _view(row: Import, scores: Sequence[ImportScore], public_url: str) -> ImportView:
    return ImportView(
        import_id=row.id, kind=row.kind.value, lane=row.lane_name, task=row.task, commit=row.commit_sha,
        repository=row.repository, questions=max(score.questions for score in scores), scores=imported_scores(scores),
        reported_by=row.reported_by, note=row.note, created_at=row.created_at, measured_at=row.measured_at,
        baseline=_promotion(row), withdrawn_at=row.withdrawn_at, warnings=row.warnings,
        url=f"{public_url.rstrip('/')}/imports/{row.id}",
    )  # fmt: skip


def _promotion(row: Import) -> Promotion | None:
    if row.promoted_at is None or row.promoted_by is None or row.environment_id is None or row.lane_hash is None:
        return None
    return Promotion(
        promoted_at=row.promoted_at, promoted_by=row.promoted_by, environment_id=row.environment_id,
        lane_hash=row.lane_hash,
    )  # fmt: skip
