"""One adopted attempt's rows as an evaluation."""

from driftline.contracts.channel import Scores
from driftline.contracts.lane import Lane
from driftline.evidence import EvaluationEvidence
from driftline.questions import fixed_order
from sqlalchemy.orm import Session

from driftline_service.database import result_queries
from driftline_service.database.tables import Attempt


def load_evaluation(session: Session, attempt: Attempt, lane: Lane) -> EvaluationEvidence:
    """All samples of one attempt and what it was measured with."""
    return EvaluationEvidence(
        samples=result_queries.samples_of(session, attempt.id),
        expected_doc_ids=tuple(fixed_order(lane.task.total_questions, lane.questions)),
        scores=None if attempt.scores is None else Scores.model_validate(attempt.scores),
        must_match=attempt.must_match or {}, recorded=attempt.recorded or {},
    )  # fmt: skip
