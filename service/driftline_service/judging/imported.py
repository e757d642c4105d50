"""A promoted import's rows as the evaluation of a base arm."""

from collections.abc import Set
from uuid import UUID

from driftline.contracts.channel import Scores
from driftline.contracts.lane import Lane
from driftline.evidence import EvaluationEvidence, Vouched
from driftline.questions import fixed_order
from sqlalchemy.orm import Session

from driftline_service.database import import_queries
from driftline_service.database.tables import Import

METRIC = "exact_match"


def load_import(session: Session, import_id: UUID, lane: Lane) -> EvaluationEvidence:
    """The samples of the lane's questions. Of a report on more questions, the others are left aside.

    Raises:
        sqlalchemy.exc.NoResultFound: if there is no such import.
    """
    found = session.get_one(Import, import_id)
    doc_ids = fixed_order(lane.task.total_questions, lane.questions)
    ranks = {doc_id: rank for rank, doc_id in enumerate(doc_ids)}
    return EvaluationEvidence(
        samples=import_queries.imported_samples(session, import_id, ranks), expected_doc_ids=tuple(doc_ids),
        scores=_scores(session, found, ranks.keys()), must_match=dict(found.facts), recorded={},
        vouched=Vouched(import_id, found.reported_by, found.promoted_by or "nobody any more"),
    )  # fmt: skip


def _scores(session: Session, found: Import, asked: Set[int]) -> Scores:
    """lm-eval's own scores of the asked questions. The means over all of them were proved when they were imported."""
    by_filter = import_queries.scores_by_filter(session, found.id)
    kept = {name: {doc: value for doc, value in scores.items() if doc in asked} for name, scores in by_filter.items()}
    whole = all(len(kept[name]) == len(scores) for name, scores in by_filter.items())
    reported = {score.filter: score.stderr for score in import_queries.scores_of(session, [found.id])[found.id]
                if score.metric == METRIC}  # fmt: skip
    return Scores(
        task_version=found.details.get("task_version", "unknown"),
        num_fewshot=int(found.facts.get("num_fewshot", 0)),
        task_hash=found.details.get("task_hash", ""),
        metrics={f"{METRIC},{name}": sum(scores.values()) / len(scores) for name, scores in kept.items() if scores},
        stderr={f"{METRIC},{name}": reported.get(name) if whole else None for name in kept},
        right={name: sorted(doc for doc, value in scores.items() if value == 1) for name, scores in kept.items()},
    )
