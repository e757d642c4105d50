"""The fresh pair of a lane: its second pair of evaluations, if one was planned, or why it is not there."""

from collections.abc import Iterable
from dataclasses import dataclass

from driftline.contracts.lane import Lane
from driftline.contracts.words import Arm, JobKind, JobState
from driftline.evidence import EvaluationEvidence
from sqlalchemy.orm import Session

from driftline_service.database import attempt_queries
from driftline_service.database.tables import Job
from driftline_service.judging.evaluation import load_evaluation
from driftline_service.runs import planner

FRESH = 1
"""Which pair confirms: the one after the first."""


@dataclass(frozen=True, slots=True)
class Fresh:
    """As LaneEvidence has it; both None where no fresh pair was planned."""

    pair: tuple[EvaluationEvidence, EvaluationEvidence] | None = None
    missing: str | None = None


def fresh_of(session: Session, jobs: Iterable[Job], lane: Lane) -> Fresh:
    """What the lane's second pair has come to, from all jobs of the run."""
    arms = {
        job.arm: job
        for job in planner.current(jobs)
        if job.kind is JobKind.EVALUATE and job.lane_name == lane.name and job.pair == FRESH
    }
    if not arms:
        return Fresh()
    adopted = [arms[arm].adopted_attempt_id for arm in Arm]
    if all(not job.state.finished or job.state is JobState.SUCCEEDED for job in arms.values()) and None in adopted:
        return Fresh(missing="a fresh pair is being measured")
    if None in adopted:
        return Fresh(missing=f"no fresh pair came: {'; '.join(_why(arms[arm]) for arm in Arm if _why(arms[arm]))}")
    attempts = attempt_queries.attempts_by_id(session, [each for each in adopted if each is not None])
    base, head = (load_evaluation(session, attempts[each], lane) for each in adopted if each is not None)
    return Fresh(pair=(base, head))


def _why(job: Job) -> str:
    if job.state in (JobState.FAILED, JobState.CANCELLED):
        return f"{job.arm.value}: {job.message.partition(chr(10))[0] or job.failure_reason}"
    return ""
