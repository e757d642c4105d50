"""A run's rows become the evidence that driftline.judge looks at, complete or not yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from driftline.contracts.channel import Case, CheckSummary, KernelBuild
from driftline.contracts.lane import Lane
from driftline.contracts.report import EventView
from driftline.contracts.words import Arm, FailureKind, JobKind, JobState
from driftline.evidence import ArmEvidence, ArmFailure, CheckEvidence, LaneEvidence, RunEvidence, SuiteEvidence
from sqlalchemy.orm import Session

from driftline_service.database import attempt_queries, job_queries, result_queries, run_queries, suite_queries
from driftline_service.database.event_queries import events_of
from driftline_service.database.tables import Attempt, Job, Run, RunLane
from driftline_service.judging.evaluation import load_evaluation
from driftline_service.judging.fresh import fresh_of
from driftline_service.judging.imported import load_import
from driftline_service.judging.job_views import Tries, job_views_of, tries_of
from driftline_service.judging.noise import noise_of
from driftline_service.judging.suite_by_gpu import gpu_differences
from driftline_service.runs import planner
from driftline_service.runs.outcomes import TIMED_OUT

NOT_THE_COMMITS = frozenset({
    "lease_expired", "worker_stopped", "worker_died", "worker_error", "disk_full", "unreachable_repository",
    "git_timeout", "git_failed",
})  # fmt: skip
"""Reasons that lie in the machinery. However often they come on one worker, they say nothing of the commit."""


@dataclass(frozen=True, slots=True)
class _Rows:
    """One run's jobs and attempts, read once."""

    all: Sequence[Job]
    current: Mapping[tuple[JobKind, Arm, str | None], Job]
    """those that decide: of pairs only the first"""
    tries: Mapping[UUID, Tries]
    adopted: Mapping[UUID, Attempt]
    reused_runs: Mapping[UUID, UUID]
    """job that was reused -> its run"""
    with_noise: bool

    def job(self, kind: JobKind, arm: Arm, lane: str | None = None) -> Job | None:
        return self.current.get((kind, arm, lane))

    def attempt(self, job: Job | None) -> Attempt | None:
        """The attempt that counts for a job, if it has one."""
        found = None if job is None else job.adopted_attempt_id
        return None if found is None else self.adopted[found]


def load_evidence(session: Session, run_id: UUID, *, with_noise: bool = True) -> RunEvidence:
    """The evidence as it stands. Only adopted attempts are read. The noise floor reads earlier runs' answers: a page
    that is looked at every second goes without.

    Raises:
        sqlalchemy.exc.NoResultFound: if there is no such run.
    """
    run = session.get_one(Run, run_id)
    jobs = job_queries.jobs_of(session, run_id)
    tries = tries_of(session, run_id)
    rows = _rows(session, jobs, tries, with_noise=with_noise)
    lanes = run_queries.lanes_of(session, run_id)
    suites = None if run.suite is None else {arm: _suite(session, rows, arm) for arm in Arm}
    return RunEvidence(
        run_id=run.id, name=run.name, repository=run.repository.url, base_sha=run.base_sha, head_sha=run.head_sha,
        base_subject=run.base_subject, head_subject=run.head_subject, state=run.state, created_at=run.created_at,
        finished_at=run.finished_at, margin=run.margin,
        lanes=tuple(_lane(session, row, rows) for row in lanes),
        checks={arm: _check(session, rows, arm) for arm in Arm},
        builds={arm: _builds(session, rows, arm) for arm in Arm}, build_notes=_build_notes(rows),
        suites=suites, suite_by_gpu=gpu_differences(session, run, suites or {}),
        jobs=job_views_of(jobs, tries, [lane.name for lane in lanes]), events=event_views(session, run_id),
    )  # fmt: skip


def event_views(session: Session, run_id: UUID) -> tuple[EventView, ...]:
    """The run's log."""
    events = events_of(session, run_id)
    return tuple(EventView(at=event.at, kind=event.kind, message=event.message) for event in events)


def _rows(session: Session, jobs: Sequence[Job], tries: Mapping[UUID, Tries], *, with_noise: bool) -> _Rows:
    current = planner.deciding(jobs)
    adopted = [job.adopted_attempt_id for job in current if job.adopted_attempt_id is not None]
    reused = [job.reused_from_job_id for job in current if job.reused_from_job_id is not None]
    return _Rows(
        all=jobs, current={(job.kind, job.arm, job.lane_name): job for job in current}, tries=tries,
        adopted=attempt_queries.attempts_by_id(session, adopted), reused_runs=job_queries.runs_of_jobs(session, reused),
        with_noise=with_noise,
    )  # fmt: skip


def _lane(session: Session, row: RunLane, rows: _Rows) -> LaneEvidence:
    lane = Lane.model_validate(row.lane)
    attempts = (rows.attempt(rows.job(JobKind.EVALUATE, arm, row.name)) for arm in Arm)
    environments = sorted({attempt.environment_id for attempt in attempts if attempt is not None})
    noise = noise_of(session, row, environments) if rows.with_noise else None
    fresh = fresh_of(session, rows.all, lane)
    return LaneEvidence(
        lane=lane, base=_arm(session, rows, Arm.BASE, lane), head=_arm(session, rows, Arm.HEAD, lane),
        identical=row.identical, unreachable=row.unreachable, noise=noise, fresh=fresh.pair, unfresh=fresh.missing,
    )  # fmt: skip


def _arm(session: Session, rows: _Rows, arm: Arm, lane: Lane) -> ArmEvidence:
    job = rows.job(JobKind.EVALUATE, arm, lane.name)
    attempt = rows.attempt(job)
    if job is not None and job.import_id is not None:
        return load_import(session, job.import_id, lane)
    if job is None or attempt is None:
        return _failure(rows, job)
    tries = rows.tries.get(job.id)
    reused = None if job.reused_from_job_id is None else rows.reused_runs[job.reused_from_job_id]
    found = load_evaluation(session, attempt, lane)
    return replace(found, attempts=1 if tries is None else tries.count, reused_from=reused)


def _check(session: Session, rows: _Rows, arm: Arm) -> CheckEvidence | ArmFailure | None:
    job = rows.job(JobKind.CHECK, arm)
    attempt = rows.attempt(job)
    if attempt is None:
        return _failure(rows, job)
    summary = None if attempt.check_summary is None else CheckSummary.model_validate(attempt.check_summary)
    cases: tuple[Case, ...] = result_queries.cases_of(session, attempt.id)
    return CheckEvidence(summary=summary, cases=cases)


def _builds(session: Session, rows: _Rows, arm: Arm) -> tuple[KernelBuild, ...] | ArmFailure | None:
    job = rows.job(JobKind.BUILD, arm)
    attempt = rows.attempt(job)
    return _failure(rows, job) if attempt is None else result_queries.builds_of(session, attempt.id)


def _build_notes(rows: _Rows) -> tuple[str, ...]:
    """What the builds say of releases of Triton that they were not asked under, each once."""
    attempts = (rows.attempt(rows.job(JobKind.BUILD, arm)) for arm in Arm)
    recorded = [attempt.recorded or {} for attempt in attempts if attempt is not None]
    return tuple(
        dict.fromkeys(f"{name}: {why}" for one in recorded for name, why in one.items() if "not asked" in str(why))
    )


def _suite(session: Session, rows: _Rows, arm: Arm) -> SuiteEvidence | ArmFailure | None:
    job = rows.job(JobKind.TESTS, arm)
    attempt = rows.attempt(job)
    return _failure(rows, job) if attempt is None else suite_queries.suite_of(session, attempt)


def _failure(rows: _Rows, job: Job | None) -> ArmFailure | None:
    if job is None or job.state is not JobState.FAILED:
        return None
    tries = rows.tries.get(job.id)
    return ArmFailure(
        kind=job.failure_kind or FailureKind.PERMANENT, reason=job.failure_reason or "unexplained",
        message=job.message, attempts=_times_seen(rows, job),
        same_worker_as_base=_same_worker_as_base(rows, job, None if tries is None else tries.latest),
    )  # fmt: skip


def _times_seen(rows: _Rows, failed: Job) -> int:
    """An arm that hung twice gets one try at each later job (runs.outcomes): that try repeats what is known."""
    alike = [
        job
        for job in rows.current.values()
        if job.arm is failed.arm and (job is failed or {job.failure_reason, failed.failure_reason} <= TIMED_OUT)
    ]
    return sum(1 if (tries := rows.tries.get(job.id)) is None else tries.count for job in alike)


def _same_worker_as_base(rows: _Rows, job: Job, failed: Attempt | None) -> bool:
    """Base did the same work on this worker in this environment: the fault is then the commit's, not the machine's."""
    base = rows.attempt(rows.job(job.kind, Arm.BASE, job.lane_name))
    if job.arm is Arm.BASE or base is None or failed is None or failed.failure_reason in NOT_THE_COMMITS:
        return False
    return (base.worker_name, base.environment_id) == (failed.worker_name, failed.environment_id)
