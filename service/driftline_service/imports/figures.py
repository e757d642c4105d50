"""Results without samples: the figures that people print become reported points, one import each."""

import json
from hashlib import sha256

from driftline.contracts.imports import FiguresRequest, ReportedPoint

from driftline_service.database.tables import ImportKind
from driftline_service.imports.reported import NewImport, NewScore
from driftline_service.intake.refusal import Refusal
from driftline_service.lanes import Lanes


def understand(request: FiguresRequest, lanes: Lanes) -> list[NewImport]:
    """One report per point.

    Raises:
        Refusal: unknown_lane or duplicate_point, naming the point.
    """
    found = [_import(point, request, lanes) for point in request.figures.points]
    seen: dict[str, int] = {}
    for place, new in enumerate(found, start=1):
        first = seen.setdefault(new.content_hash, place)
        if first != place:
            raise Refusal("duplicate_point", f"points {first} and {place} are the same; leave one out")
    return found


def _import(point: ReportedPoint, request: FiguresRequest, lanes: Lanes) -> NewImport:
    lane = lanes.named(point.lane)
    if lane is None:
        known = ", ".join(map(repr, lanes.names))
        raise Refusal("unknown_lane", f"there is no lane {point.lane!r}; there are {known}")
    return NewImport(
        kind=ImportKind.FIGURES, content_hash=_hash(point), lane_name=lane.name, task=lane.task.name,
        commit_sha=point.commit, repository=point.repository, reported_by=request.reported_by,
        note=": ".join(part for part in (request.note, point.note) if part), measured_at=point.measured_at,
        scores=tuple(
            NewScore(score.metric, score.filter, score.value, score.stderr, point.questions) for score in point.scores
        ),
    )  # fmt: skip


def _hash(point: ReportedPoint) -> str:
    """Of the figures and what they are of; who sends them with which note does not make them another report."""
    fields = point.model_dump(mode="json", exclude={"note"})
    fields["scores"] = sorted(fields["scores"], key=lambda score: (score["metric"], score["filter"]))
    return sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()
