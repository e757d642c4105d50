"""When a promoted import stands for a base evaluation, and when it turns out that it may not."""

from datetime import datetime

from driftline.contracts.words import JobKind, JobState
from sqlalchemy.orm import Session

from driftline_service.database import attempt_queries, import_queries, job_queries
from driftline_service.database.event_queries import record
from driftline_service.database.tables import Job
from driftline_service.imports.promotion import stated_differences
from driftline_service.runs.outcomes import title


def stand_in(session: Session, job: Job, environment_id: str, now: datetime) -> bool:
    """Let a promoted import stand for this queued base job; False if there is none.

    What this service measured itself always comes first: callers ask only where there is no such baseline.
    """
    if job.kind is not JobKind.EVALUATE:
        return False
    found = import_queries.promoted_import(session, job, environment_id)
    if found is None:
        return False
    values = {"import_id": found.id, "finished_at": now}
    if not job_queries.move_job(session, job.id, expected=(JobState.QUEUED,), state=JobState.SUCCEEDED, **values):
        return False
    told = f"{title(job)}: import {found.id}, reported by {found.reported_by}, promoted by {found.promoted_by}"
    record(session, job.run_id, "job_imported", told, job_id=job.id)
    import_queries.record_import(session, found.id, "import_used", f"stands for base in run {job.run_id}")
    return True


def differences(session: Session, base: Job, head: Job) -> list[str]:
    """Why the import behind `base` may not stand beside `head` as it was measured; empty if it may."""
    if base.import_id is None or head.adopted_attempt_id is None:
        return []
    found = import_queries.import_by_id(session, base.import_id)
    if found is None or found.promoted_at is None:
        return ["promotion"]
    attempt = attempt_queries.attempts_by_id(session, (head.adopted_attempt_id,))[head.adopted_attempt_id]
    fields = stated_differences(found.facts, attempt.must_match or {})
    return fields if found.environment_id == attempt.environment_id else ["environment_id", *fields]
