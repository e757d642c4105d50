"""One adopted attempt's rows as an evaluation."""

from driftline.contracts.channel import Scores
from driftline.contracts.lane import Lane
from driftline.evidence import EvaluationEvidence
from driftline.questions import fixed_order
from sqlalchemy.orm import Session

from driftline_service.database import result_queries
from driftline_service.database.tables import Attempt


def load_evaluation(session: Session, attempt: Attempt, lane: Lane) -> EvaluationEvidence:
    """All samples of one attempt and what it was measured with. Of one that was stopped early, those that were enough."""
    order = tuple(fixed_order(lane.task.total_questions, lane.questions))
    return EvaluationEvidence(
        samples=result_queries.samples_of(session, attempt.id),
        expected_doc_ids=order if attempt.asked is None else order[: attempt.asked],
        forced_only=() if attempt.asked is None else result_queries.forced_only(session, attempt.id),
        scores=None if attempt.scores is None else Scores.model_validate(attempt.scores),
        must_match=attempt.must_match or {}, recorded=attempt.recorded or {},
    )  # fmt: skip
