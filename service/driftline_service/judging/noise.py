"""The noise floor of a lane: evaluations of one and the same commit against each other, whichever runs made them."""

from collections.abc import Iterable, Sequence
from uuid import UUID

from driftline.contracts.beside import NoiseFloor
from driftline.contracts.lane import Lane
from driftline.evidence import EvaluationEvidence
from driftline.judge.noise import noise_floor
from sqlalchemy.orm import Session

from driftline_service.database import result_queries
from driftline_service.database.tables import Attempt, Job, RunLane
from driftline_service.judging.evaluation import load_evaluation


def noise_of(session: Session, row: RunLane, environments: Sequence[str]) -> NoiseFloor | None:
    """The lane's noise floor in the environment of this run; None if no commit was evaluated twice there, or if the
    arms ran in different environments: then there is no floor that both stand on."""
    if len(environments) != 1:
        return None
    repeated = result_queries.repeated_evaluations(session, row.lane_hash, environments[0])
    pairs = _pairs(repeated)
    if not pairs:
        return None
    lane = Lane.model_validate(row.lane)
    attempts = {attempt.id: attempt for pair in pairs for attempt in pair}
    loaded: dict[UUID, EvaluationEvidence] = {key: load_evaluation(session, attempts[key], lane) for key in attempts}
    return noise_floor([(loaded[first.id], loaded[second.id]) for first, second in pairs])


def _pairs(evaluations: Iterable[tuple[Job, Attempt]]) -> list[tuple[Attempt, Attempt]]:
    """Each evaluation with the one before it of the same commit, in the order in which the pairs came to be."""
    latest: dict[tuple[str, str], Attempt] = {}
    pairs = []
    for job, attempt in evaluations:
        key = (job.commit_sha, job.kernel_path)
        if key in latest:
            pairs.append((latest[key], attempt))
        latest[key] = attempt
    return pairs
