"""Named queries on a repository's own tests, as plain values of driftline."""

from collections.abc import Sequence
from uuid import UUID

from driftline.contracts import channel
from driftline.contracts.words import JobKind, JobState
from driftline.evidence import SuiteEvidence
from sqlalchemy import select
from sqlalchemy.dialects.postgresql import distinct_on
from sqlalchemy.orm import Session

from driftline_service.database.tables import Attempt, Job, KernelTest, Run, TestTolerance


def suite_of(session: Session, attempt: Attempt) -> SuiteEvidence:
    """An attempt's tests and tolerances, as they came."""
    return SuiteEvidence(
        tests=tests_of(session, attempt.id), tolerances=tolerances_of(session, attempt.id),
        gpu_type=attempt.worker.get("gpu_type"), environment_id=attempt.environment_id,
    )  # fmt: skip


def tests_of(session: Session, attempt_id: UUID) -> tuple[channel.KernelTest, ...]:
    query = select(KernelTest).where(KernelTest.attempt_id == attempt_id).order_by(KernelTest.position)
    return tuple(
        channel.KernelTest(node_id=row.node_id, outcome=row.outcome, seconds=row.seconds, message=row.message)
        for row in session.scalars(query)
    )


def tolerances_of(session: Session, attempt_id: UUID) -> tuple[channel.Tolerance, ...]:
    query = select(TestTolerance).where(TestTolerance.attempt_id == attempt_id).order_by(TestTolerance.position)
    return tuple(
        channel.Tolerance(file=row.file, line=row.line, scope=row.scope, name=row.name, value=row.value)
        for row in session.scalars(query)
    )


def attempts_elsewhere(session: Session, run: Run, gpu_type: str | None, commit: str) -> Sequence[tuple[str, Attempt]]:
    """(commit, attempt) of each other type of GPU on which this repository's tests ran: of this commit if it was there,
    else the newest."""
    place = Attempt.worker["gpu_type"].astext
    query = (
        select(Job.commit_sha, Attempt)
        .join(Attempt, Attempt.id == Job.adopted_attempt_id)
        .join(Run, Run.id == Job.run_id)
        .where(Run.repository_id == run.repository_id, Job.kind == JobKind.TESTS, Job.state == JobState.SUCCEEDED)
        .where(Job.reused_from_job_id.is_(None), place.is_distinct_from(gpu_type))
        .ext(distinct_on(place))
        .order_by(place, (Job.commit_sha == commit).desc(), Job.finished_at.desc())
    )
    return [(sha, attempt) for sha, attempt in session.execute(query).all()]
