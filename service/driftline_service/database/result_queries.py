"""Named queries on what children reported, as plain values of driftline."""

from collections.abc import Collection, Sequence
from uuid import UUID

from driftline.contracts import channel
from driftline.contracts.words import JobState
from driftline.evidence import ForcedEvidence, SampleEvidence
from sqlalchemy import and_, func, select
from sqlalchemy.orm import Session

from driftline_service.database.months import lies_in
from driftline_service.database.tables import Attempt, Job, KernelBuild, KernelCase, Question, Sample, TeacherForced

NOISE_EVALUATIONS = 20
"""The newest evaluations of a lane that its noise floor looks at: each pair costs a comparison of all its questions."""


def samples_of(
    session: Session, attempt_id: UUID, doc_ids: Collection[int] | None = None
) -> tuple[SampleEvidence, ...]:
    """An attempt's samples, or those of some questions, with their teacher-forced log-probabilities, in the fixed order."""
    forced = and_(lies_in(session, TeacherForced, attempt_id), TeacherForced.doc_id == Sample.doc_id)
    query = (
        select(
            Sample.doc_id, Sample.rank, Sample.doc_hash, Sample.prompt_hash, Sample.target_hash, Question.question,
            Question.target, Sample.response, Sample.finish_reason, Sample.prompt_tokens, Sample.response_tokens,
            Sample.left_truncated, TeacherForced.logprobs, TeacherForced.scored_prompt_tokens,
        )
        .join(Question, Question.content_hash == Sample.content_hash)
        .outerjoin(TeacherForced, forced)
        .where(lies_in(session, Sample, attempt_id))
        .order_by(Sample.rank)
    )  # fmt: skip
    if doc_ids is not None:
        query = query.where(Sample.doc_id.in_(doc_ids))
    return tuple(SampleEvidence(*row) for row in session.execute(query))


def forced_only(session: Session, attempt_id: UUID) -> tuple[ForcedEvidence, ...]:
    """The log-probabilities of questions whose answers were not asked."""
    answered = select(Sample.doc_id).where(lies_in(session, Sample, attempt_id), Sample.doc_id == TeacherForced.doc_id)
    query = select(TeacherForced.doc_id, TeacherForced.logprobs).where(lies_in(session, TeacherForced, attempt_id))
    rows = session.execute(query.where(~answered.exists()).order_by(TeacherForced.doc_id))
    return tuple(ForcedEvidence(doc_id, logprobs) for doc_id, logprobs in rows)


def cases_of(session: Session, attempt_id: UUID) -> tuple[channel.Case, ...]:
    """An attempt's kernel check cases, as they came."""
    query = select(KernelCase).where(KernelCase.attempt_id == attempt_id).order_by(KernelCase.position)
    return tuple(
        channel.Case(
            name=row.name, kind=row.kind, backend=row.backend, passed=row.passed, max_abs_err=row.max_abs_err,
            max_rel_err=row.max_rel_err, tolerance=row.tolerance, config=row.config, message=row.message,
        )
        for row in session.scalars(query)
    )  # fmt: skip


def builds_of(session: Session, attempt_id: UUID) -> tuple[channel.KernelBuild, ...]:
    """An attempt's kernel builds, as they came."""
    query = select(KernelBuild).where(KernelBuild.attempt_id == attempt_id).order_by(KernelBuild.position)
    return tuple(
        channel.KernelBuild(
            kernel=row.kernel, config=row.config, arch=row.arch, registers=row.registers, spills=row.spills,
            shared_memory=row.shared_memory, compiled=row.compiled, error=row.error, triton=row.triton,
        )
        for row in session.scalars(query)
    )  # fmt: skip


def repeated_evaluations(session: Session, lane_hash: str, environment_id: str) -> Sequence[tuple[Job, Attempt]]:
    """Fresh adopted evaluations of commits that were evaluated more than once on a lane in an environment.

    The newest NOISE_EVALUATIONS of them, oldest first.
    """
    times = func.count().over(partition_by=(Job.commit_sha, Job.kernel_path))
    counted = (
        select(Job.id, Job.adopted_attempt_id, Job.finished_at, times.label("times"))
        .join(Attempt, Attempt.id == Job.adopted_attempt_id)
        .where(Job.lane_hash == lane_hash, Job.state == JobState.SUCCEEDED, Job.reused_from_job_id.is_(None))
        .where(Attempt.environment_id == environment_id, Attempt.asked.is_(None))
        .subquery()
    )
    query = (
        select(Job, Attempt)
        .join(counted, counted.c.id == Job.id)
        .join(Attempt, Attempt.id == counted.c.adopted_attempt_id)
        .where(counted.c.times > 1)
        .order_by(counted.c.finished_at.desc(), Job.id)
        .limit(NOISE_EVALUATIONS)
    )
    return [(job, attempt) for job, attempt in reversed(session.execute(query).all())]
