"""A lane's history: evaluations measured here and those that people reported, told apart, oldest first."""

from driftline.contracts.imports import HistoryPoint, ImportedScore, LaneHistory
from sqlalchemy.orm import Session

from driftline_service.database import history_queries, import_queries
from driftline_service.database.history_queries import Measured
from driftline_service.database.tables import Import, ImportKind, ImportScore
from driftline_service.imports.views import imported_scores
from driftline_service.intake.refusal import Refusal
from driftline_service.lanes import Lanes


def lane_history(session: Session, lane: str, lanes: Lanes, *, repository: str | None, limit: int) -> LaneHistory:
    """The newest `limit` points of a lane; of one repository, if one is named.

    Raises:
        Refusal: unknown_lane, if it is neither configured nor was ever measured or reported on.
    """
    configured = known_lane(session, lane, lanes)
    measured = history_queries.measured_on(session, lane, repository=repository, limit=limit + 1)
    reported = history_queries.reported_on(session, lane, repository=repository, limit=limit + 1)
    scores = import_queries.scores_of(session, [row.id for row in reported])
    points = [*map(_measured, measured), *(_reported(row, scores[row.id]) for row in reported)]
    points.sort(key=lambda point: (point.at, point.commit))
    return LaneHistory(lane=lane, configured=configured, points=points[-limit:], more=len(points) > limit)


def known_lane(session: Session, lane: str, lanes: Lanes) -> bool:
    """Whether a lane is configured; one that is in the history alone is known too.

    Raises:
        Refusal: unknown_lane, naming those that there are.
    """
    if lanes.named(lane) is not None:
        return True
    if lane not in (known := history_queries.lanes_with_history(session)):
        names = ", ".join(map(repr, [*lanes.names, *sorted(known - set(lanes.names))]))
        raise Refusal("unknown_lane", f"there is no lane {lane!r}; there are {names}", status=404)
    return False


def _measured(found: Measured) -> HistoryPoint:
    scores = [
        ImportedScore(
            metric=metric, filter=name, value=value, stderr=found.stderr.get(f"{metric},{name}"),
            questions=found.questions,
        )
        for key, value in sorted(found.metrics.items(), reverse=True)
        for metric, _, name in (key.partition(","),)
    ]  # fmt: skip
    return HistoryPoint(
        source="measured", at=found.at, commit=found.commit, repository=found.repository, questions=found.questions,
        scores=scores, run_id=found.run_id, import_id=None, has_samples=True, baseline=False, reported_by=None, note="",
    )  # fmt: skip


def _reported(row: Import, scores: list[ImportScore]) -> HistoryPoint:
    return HistoryPoint(
        source="reported", at=row.measured_at or row.created_at, commit=row.commit_sha, repository=row.repository,
        questions=max(score.questions for score in scores), scores=imported_scores(scores), run_id=None,
        import_id=row.id, has_samples=row.kind is ImportKind.SAMPLES, baseline=row.promoted_at is not None,
        reported_by=row.reported_by, note=row.note,
    )  # fmt: skip
