"""Is everything there that a job was asked for? An attempt that says it succeeded is believed only then."""

from driftline.contracts.lane import Lane
from driftline.contracts.words import FailureKind, JobKind
from driftline.contracts.worker_api import Finish
from sqlalchemy.orm import Session

from driftline_service.database import attempt_queries, run_queries
from driftline_service.database.tables import Attempt, Job
from driftline_service.runs.outcomes import AttemptFailure
from driftline_service.worker_api.specs import lane_ranks


def missing(session: Session, attempt: Attempt, end: Finish) -> AttemptFailure | None:
    """The failure of an attempt whose evidence is incomplete, or None."""
    gap = _batch_gap(attempt, end) or _evidence_gap(session, attempt)
    return None if gap is None else AttemptFailure(FailureKind.TRANSIENT, "incomplete", gap)


def _batch_gap(attempt: Attempt, end: Finish) -> str | None:
    if end.batches == attempt.next_sequence:
        return None
    return f"{end.batches} batches were sent and {attempt.next_sequence} are stored"


def _evidence_gap(session: Session, attempt: Attempt) -> str | None:
    job = session.get_one(Job, attempt.job_id)
    match job.kind:
        case JobKind.BUILD:
            return None if attempt_queries.build_count(session, attempt.id) else "no kernel was built"
        case JobKind.CHECK:
            checked = attempt.check_summary is not None and attempt_queries.case_count(session, attempt.id) > 0
            return None if checked else "the check reported no summary or no case"
        case JobKind.TESTS:
            return None if attempt_queries.test_count(session, attempt.id) else "no test was reported"
        case JobKind.EVALUATE:
            return _evaluation_gap(session, attempt, job)


def _evaluation_gap(session: Session, attempt: Attempt, job: Job) -> str | None:
    row = run_queries.lane_of(session, job.run_id, job.lane_name or "")
    ranks = lane_ranks(Lane.model_validate(row.lane))
    asked = ranks.keys()
    sampled = attempt_queries.sampled_doc_ids(session, attempt.id)
    enough = {doc_id for doc_id in asked if row.stopped_after is None or ranks[doc_id] < row.stopped_after}
    unanswered = len(enough - sampled)
    unforced = len(asked - attempt_queries.forced_doc_ids(session, attempt.id))
    if unanswered or unforced:
        return f"of {len(enough)} questions {unanswered} have no sample and {unforced} no teacher-forced pass"
    if attempt.scores is None:
        return "lm-eval's scores are missing"
    return None if attempt.must_match is not None else "the environment is missing"
