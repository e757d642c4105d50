"""Evaluations that people report: what is sent to import them, and how they are listed again.

An import is never a measurement of this service: every shape here says who reported it, when, and with which note.
"""

from datetime import datetime
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit
from uuid import UUID

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from driftline.contracts.base import Contract, Digest, Name, Share
from driftline.contracts.report import EventView

CommitName = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{7,40}$")]
"""A commit as people print it: at least seven hexadecimal digits. Only a full one can become a baseline."""

_STORABLE = r"^[^\x00-\x08\x0b\x0c\x0e-\x1f]*$"
Person = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", min_length=1, max_length=100)]
Note = Annotated[str, StringConstraints(pattern=_STORABLE, max_length=1000)]


def _without_password(address: str) -> str:
    if "://" in address and ":" in urlsplit(address).netloc.rpartition("@")[0]:
        raise ValueError("must hold no password: pages show the address")
    return address


Address = Annotated[
    str,
    StringConstraints(pattern=r"^[^\x00-\x20\x7f]+$", max_length=500),
    AfterValidator(_without_password),
]
"""A repository as runs name it: a URL, or a folder of the service's machine."""

ScoreName = Annotated[str, StringConstraints(pattern=r"^[^\x00-\x1f\x7f]+$", max_length=100)]

LARGEST_COUNT = 2**31 - 1
MOST_POINTS = 1000
"""Points of one file of figures: a table that people typed, not a database."""


class ReportedScore(Contract):
    """One line of lm-eval's own table."""

    metric: ScoreName = Field(default="exact_match", examples=["exact_match"])
    filter: ScoreName = Field(examples=["strict-match"])
    value: Share = Field(examples=[0.5838])
    stderr: Annotated[float, Field(ge=0)] | None = Field(default=None, examples=[0.0136])


class ReportedPoint(Contract):
    """The figures of one evaluation, without its samples: it can be shown beside others, never compared by pairs."""

    lane: Name = Field(examples=["granite-4.0-tiny V1"])
    commit: CommitName = Field(examples=["316b1bf"])
    questions: int = Field(ge=1, le=LARGEST_COUNT, examples=[1319])
    scores: list[ReportedScore] = Field(min_length=1, max_length=50)
    repository: Address | None = Field(default=None, examples=["https://github.com/vllm-project/vllm"])
    note: Note = ""
    measured_at: datetime | None = None

    @model_validator(mode="after")
    def _each_score_once(self) -> Self:
        names = [(score.metric, score.filter) for score in self.scores]
        if len(set(names)) < len(names):
            raise ValueError(f"{self.lane} at {self.commit}: a metric and filter is given twice")
        return self


class ReportedFigures(Contract):
    """The documented form of results without samples: `driftline import --results-only FILE`."""

    format: Literal["driftline-figures-1"]
    points: list[ReportedPoint] = Field(min_length=1, max_length=MOST_POINTS)


class FiguresRequest(Contract):
    """Body of `POST /api/v1/imports/figures`."""

    reported_by: Person
    note: Note = Field(default="", description="put before each point's own note")
    figures: ReportedFigures


class ImportRequest(Contract):
    """Query of `POST /api/v1/imports`, whose body is a tar archive of lm-eval's output files."""

    commit: CommitName
    lane: Name
    reported_by: Person
    repo: Address | None = Field(default=None, description="repository of the commit; a baseline needs it")
    note: Note = ""


class DecisionRequest(Contract):
    """Body of promote, demote and withdraw: who decides, and why. Both go into the event log."""

    decided_by: Person
    reason: Annotated[Note, StringConstraints(min_length=1)]


class PromoteRequest(DecisionRequest):
    environment_id: Annotated[str, StringConstraints(min_length=1, max_length=200)] | None = Field(
        default=None, description="the worker environment for which it stands; default: that of the worker seen last"
    )


class ImportedScore(Contract):
    """One stored score of an import."""

    metric: str
    filter: str
    value: float
    stderr: float | None
    questions: int


class Promotion(Contract):
    """An admin's word that an import may stand for a base arm."""

    promoted_at: datetime
    promoted_by: str
    environment_id: str
    lane_hash: str


class ImportView(Contract):
    """One import as listed."""

    import_id: UUID
    kind: Literal["samples", "figures"] = Field(description="figures: only the numbers, never compared by pairs")
    source: Literal["reported"] = "reported"
    lane: str
    task: str
    commit: str
    repository: str | None
    questions: int
    scores: list[ImportedScore]
    reported_by: str
    note: str
    created_at: datetime
    measured_at: datetime | None = Field(description="when lm-eval wrote the results, by its own word")
    baseline: Promotion | None = Field(description="null: never used as a base arm")
    withdrawn_at: datetime | None
    warnings: list[str]
    url: str = Field(description="the import's page")


class ImportDetail(Contract):
    """One import with what its files say of themselves and its log."""

    imported: ImportView
    facts: dict[str, str] = Field(description="what the files state in the words of the comparability key")
    details: dict[str, str] = Field(description="what else the files state; decides nothing")
    events: list[EventView]


class ImportList(Contract):
    imports: list[ImportView]
    next: str | None = Field(description="path of the next page, if there are more")


class HistoryPoint(Contract):
    """One evaluation on a lane, measured by this service or reported by a person."""

    source: Literal["measured", "reported"]
    at: datetime = Field(description="when it was measured, as far as that is known; else when it was reported")
    commit: str
    repository: str | None
    questions: int
    scores: list[ImportedScore]
    run_id: UUID | None = Field(description="of a measured point")
    import_id: UUID | None = Field(description="of a reported point")
    has_samples: bool = Field(description="false: only the numbers are known, never compared by pairs")
    baseline: bool = Field(description="a reported point that an admin promoted")
    reported_by: str | None
    note: str


class LaneHistory(Contract):
    """A lane's evaluations, oldest first."""

    lane: str
    configured: bool = Field(description="false for a lane that is only in the history any more")
    points: list[HistoryPoint]
    more: bool = Field(description="older points were left out; ask with a larger limit")


class RescoredAnswer(Contract):
    """A question whose stored score is not what its response deserves by driftline's own scoring."""

    doc_id: int
    filter: str
    stored: float
    rescored: float
    extracted: str
    stored_extracted: str | None = Field(description="what lm-eval took from the response, where that is known")


class RescoredFilter(Contract):
    filter: str
    questions: int
    stored_mean: float
    rescored_mean: float
    differences: int


class RescoredEvaluation(Contract):
    """One evaluation scored again from its stored responses. Nothing stored was changed."""

    name: str = Field(description="e.g. 'canary V1 head', or the task of an lm-eval folder")
    filters: list[RescoredFilter]
    differences: list[RescoredAnswer]
    not_rescored: list[str] = Field(description="filters that driftline has no scoring for")
    source_hash: Digest = Field(description="sha256 over every response, gold answer and stored score that was read")


class RescoreReport(Contract):
    """All evaluations of a run, an import or a folder."""

    same: bool
    evaluations: list[RescoredEvaluation]
