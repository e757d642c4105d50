"""Which answers differ between a run's arms: found by the database, and loaded only where somebody looks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from driftline.contracts.report import ChangedSample
from driftline.contracts.words import Arm, JobKind
from driftline.evidence import EvaluationEvidence
from driftline.judge.changed import changed_between, changed_in_lane
from sqlalchemy import or_, select
from sqlalchemy.orm import Session, aliased

from driftline_service.database import job_queries, result_queries, run_queries
from driftline_service.database.months import lies_in
from driftline_service.database.tables import Job, Sample
from driftline_service.judging.evidence import load_evidence
from driftline_service.runs import planner


@dataclass(frozen=True, slots=True)
class ChangedPlace:
    """Where an answer changed."""

    lane: str
    doc_id: int


@dataclass(frozen=True, slots=True)
class ChangedAnswers:
    """All places, lane by lane in the fixed order of questions."""

    places: tuple[ChangedPlace, ...]
    attempts: Mapping[str, tuple[UUID, UUID]]
    """lane -> base's and head's"""
    told: Mapping[ChangedPlace, ChangedSample]
    """those of lanes with an imported arm, which are loaded already"""

    def load(self, session: Session, places: Sequence[ChangedPlace]) -> list[ChangedSample]:
        """Some of them, both arms side by side."""
        found = dict(self.told)
        for lane, (base, head) in self.attempts.items():
            wanted = [place.doc_id for place in places if place.lane == lane]
            if wanted:
                arms = (_evidence(session, attempt, wanted) for attempt in (base, head))
                found |= {ChangedPlace(lane, each.doc_id): each for each in changed_between(lane, *arms)}
        return [found[place] for place in places if place in found]


def changed_answers(session: Session, run_id: UUID) -> ChangedAnswers:
    """Where text or correctness differs; nothing of lanes of which an arm is missing."""
    jobs = planner.deciding(job_queries.jobs_of(session, run_id))
    evaluations = {(job.lane_name, job.arm): job for job in jobs if job.kind is JobKind.EVALUATE}
    names = [row.name for row in run_queries.lanes_of(session, run_id)]
    attempts = {name: pair for name in names if (pair := _attempts(evaluations, name)) is not None}
    imported = {job.lane_name for job in evaluations.values() if job.import_id is not None}
    told = dict(_told(session, run_id, imported)) if imported else {}
    places = [
        place
        for name in names
        for place in (
            (place for place in told if place.lane == name) if name in imported else _places(session, name, attempts)
        )
    ]
    return ChangedAnswers(tuple(places), attempts, told)


def _attempts(evaluations: Mapping[tuple[str | None, Arm], Job], lane: str) -> tuple[UUID, UUID] | None:
    base, head = (evaluations.get((lane, arm)) for arm in (Arm.BASE, Arm.HEAD))
    if base is None or head is None or base.adopted_attempt_id is None or head.adopted_attempt_id is None:
        return None
    return base.adopted_attempt_id, head.adopted_attempt_id


def _places(session: Session, lane: str, attempts: Mapping[str, tuple[UUID, UUID]]) -> Iterator[ChangedPlace]:
    """The same text to the same question is as right in both arms: no answer needs to be scored to find the others."""
    if lane not in attempts:
        return
    base, head = aliased(Sample), aliased(Sample)
    differs = or_(base.response != head.response, base.content_hash != head.content_hash)
    query = (
        select(head.doc_id)
        .join(base, base.doc_id == head.doc_id)
        .where(lies_in(session, base, attempts[lane][0]), lies_in(session, head, attempts[lane][1]), differs)
        .order_by(base.rank, base.doc_id)
    )
    for doc_id in session.scalars(query):
        yield ChangedPlace(lane, doc_id)


def _told(session: Session, run_id: UUID, lanes: Iterable[str | None]) -> Iterator[tuple[ChangedPlace, ChangedSample]]:
    for lane in load_evidence(session, run_id, with_noise=False).lanes:
        if lane.lane.name in lanes:
            for each in changed_in_lane(lane):
                yield ChangedPlace(each.lane, each.doc_id), each


def _evidence(session: Session, attempt_id: UUID, doc_ids: Sequence[int]) -> EvaluationEvidence:
    samples = result_queries.samples_of(session, attempt_id, doc_ids)
    return EvaluationEvidence(samples=samples, expected_doc_ids=tuple(doc_ids), scores=None, must_match={}, recorded={})
