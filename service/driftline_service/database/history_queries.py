"""Named queries on a lane's history: what was measured on it and what was reported of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from driftline.contracts.words import Arm, JobKind, JobState
from sqlalchemy import Integer, and_, func, select, union
from sqlalchemy.orm import Session

from driftline_service.database.tables import Attempt, Import, Job, Repository, Run, RunLane


@dataclass(frozen=True, slots=True)
class Measured:
    """One evaluation that this service made: lm-eval's own scores of it, by `metric,filter`."""

    run_id: UUID
    at: datetime
    commit: str
    repository: str
    questions: int
    metrics: dict[str, Any]
    stderr: dict[str, Any]


def measured_on(
    session: Session, lane: str, *, repository: str | None, limit: int, base_only: bool = False
) -> list[Measured]:
    """The newest evaluations of a lane, newest first; each once, in the run that measured it. `base_only`: of base arms."""
    # Not counted: an adopted evaluation has all the questions that were asked, and a lane's history is thousands of them.
    questions = func.coalesce(Attempt.asked, RunLane.lane["questions"].astext.cast(Integer))
    query = (
        select(
            Job.run_id, Job.finished_at, Job.commit_sha, Repository.url, questions, Attempt.scores["metrics"],
            Attempt.scores["stderr"],
        )
        .join(Attempt, Attempt.id == Job.adopted_attempt_id)
        .join(Run, Run.id == Job.run_id)
        .join(RunLane, and_(RunLane.run_id == Job.run_id, RunLane.name == Job.lane_name))
        .join(Repository, Repository.id == Run.repository_id)
        .where(Job.kind == JobKind.EVALUATE, Job.lane_name == lane, Job.state == JobState.SUCCEEDED)
        .where(Job.reused_from_job_id.is_(None), Attempt.scores.is_not(None))
        .order_by(Job.finished_at.desc(), Job.id)
        .limit(limit)
    )  # fmt: skip
    if repository is not None:
        query = query.where(Repository.url == repository)
    if base_only:
        query = query.where(Job.arm == Arm.BASE)
    return [Measured(*row) for row in session.execute(query)]


def reported_on(session: Session, lane: str, *, repository: str | None, limit: int) -> Sequence[Import]:
    """The newest imports of a lane that were not withdrawn, newest first by when they were measured or reported."""
    at = func.coalesce(Import.measured_at, Import.created_at)
    query = select(Import).where(Import.lane_name == lane, Import.withdrawn_at.is_(None))
    if repository is not None:
        query = query.where(Import.repository == repository)
    return session.scalars(query.order_by(at.desc(), Import.id).limit(limit)).all()


def lanes_with_history(session: Session) -> set[str]:
    """Names of all lanes on which anything was measured or reported."""
    measured = select(RunLane.name).distinct()
    reported = select(Import.lane_name).where(Import.withdrawn_at.is_(None)).distinct()
    return set(session.scalars(union(measured, reported)))


def history_counts(session: Session) -> dict[str, tuple[int, int]]:
    """lane -> (evaluations measured here, imports that were not withdrawn)."""
    counts: dict[str, tuple[int, int]] = {}
    measured = (
        select(Job.lane_name, func.count())
        .where(Job.kind == JobKind.EVALUATE, Job.state == JobState.SUCCEEDED)
        .where(Job.reused_from_job_id.is_(None), Job.import_id.is_(None))
        .group_by(Job.lane_name)
    )
    for name, count in session.execute(measured):
        counts[name or ""] = (count, 0)
    reported = select(Import.lane_name, func.count()).where(Import.withdrawn_at.is_(None)).group_by(Import.lane_name)
    for name, count in session.execute(reported):
        counts[name] = (counts.get(name, (0, 0))[0], count)
    return counts
