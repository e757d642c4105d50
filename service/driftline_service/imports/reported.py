"""An understood report, before it is stored: plain values, every text storable."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from driftline_service.database.tables import ImportKind


class NewScore(NamedTuple):
    """One line of lm-eval's own table. `stderr` is None where lm-eval gave none."""

    metric: str
    filter: str
    value: float
    stderr: float | None
    questions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NewSample:
    """One question's outcome; `scores` and `extracted` by filter."""

    doc_id: int
    question: str
    target: str
    doc_hash: str
    prompt_hash: str
    target_hash: str
    response: str
    scores: Mapping[str, float]
    extracted: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewImport:
    """One evaluation as reported. `samples` opens its stream anew at each call: it is read twice."""

    kind: ImportKind
    content_hash: str
    lane_name: str
    task: str
    commit_sha: str
    repository: str | None
    reported_by: str
    note: str
    measured_at: datetime | None
    scores: tuple[NewScore, ...]
    facts: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    samples: Callable[[], Iterable[NewSample]] = tuple
