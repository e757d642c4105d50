"""When an earlier run's work stands for a base job, and when it turns out that it may not."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from driftline.contracts.lane import Lane
from driftline.contracts.words import Arm, JobKind, JobState
from sqlalchemy.orm import Session

from driftline_service.database import attempt_queries, job_queries, run_queries, worker_queries
from driftline_service.database.event_queries import record
from driftline_service.database.job_queries import Sendings
from driftline_service.database.tables import Attempt, Job, Run
from driftline_service.runs import imports, planner
from driftline_service.runs.outcomes import title


def reuse(session: Session, run: Run, jobs: Iterable[Job], sendings: Mapping[UUID, Sendings], now: datetime) -> None:
    """Let earlier work stand for base jobs of which nothing was sent yet. Never for a run that measures noise.

    Head was not measured yet, so its environment is guessed: that of the worker seen last. `revise` mends a wrong
    guess.
    """
    for job in jobs:
        if not _may_be_reused(run, job, sendings):
            continue
        environment = worker_queries.latest_environment(session, _gpu_type(session, job))
        if environment is None:
            continue
        baseline = job_queries.baseline_of(session, job, environment)
        if baseline is None:
            imports.stand_in(session, job, environment, now)
            continue
        values = {"adopted_attempt_id": baseline.attempt_id, "reused_from_job_id": baseline.job_id, "finished_at": now}
        if job_queries.move_job(session, job.id, expected=(JobState.QUEUED,), state=JobState.SUCCEEDED, **values):
            record(session, run.id, "job_reused", f"{title(job)}: from run {baseline.run_id}", job_id=job.id)


def not_awaited(session: Session, run: Run, jobs: Iterable[Job], sendings: Mapping[UUID, Sendings]) -> list[Job]:
    """These jobs less those whose work an earlier run is doing already; they get it when that run has it."""
    return [
        job
        for job in jobs
        if not (_may_be_reused(run, job, sendings) and job_queries.is_measured_by_an_earlier_run(session, job))
    ]


def _may_be_reused(run: Run, job: Job, sendings: Mapping[UUID, Sendings]) -> bool:
    """A base job of which nothing was sent yet, in a run that does not measure noise."""
    fresh = job.arm is Arm.BASE and job.pair == job.generation == 0 and job.state is JobState.QUEUED
    return fresh and not run.measure_noise and not sendings[job.id].sent


def revise(session: Session, run: Run, jobs: Sequence[Job]) -> bool:
    """Queue a fresh base for each lane whose reused one was measured in another way than head. True if there is any."""
    current = {(job.arm, job.lane_name): job for job in planner.deciding(jobs) if job.kind is JobKind.EVALUATE}
    revised = False
    for (arm, lane_name), base in current.items():
        head = current.get((Arm.HEAD, lane_name))
        if arm is not Arm.BASE or head is None:
            continue
        if base.import_id is not None:
            fields = imports.differences(session, base, head)
        elif base.reused_from_job_id is not None:
            fields = _differences(session, base, head)
        else:
            continue
        if fields:
            session.add(_fresh(base))
            told = f"{title(base)}: head differs in {', '.join(fields)}; base is evaluated afresh"
            record(session, run.id, "baseline_refused", told, job_id=base.id)
            revised = True
    session.flush()
    return revised


def differing_fields(base: Attempt, head: Attempt) -> list[str]:
    """The names under which two attempts were not measured alike."""
    ours, theirs = base.must_match or {}, head.must_match or {}
    fields = sorted(key for key in ours.keys() | theirs.keys() if ours.get(key) != theirs.get(key))
    return fields if base.environment_id == head.environment_id else ["environment_id", *fields]


def _differences(session: Session, base: Job, head: Job) -> list[str]:
    if base.adopted_attempt_id is None or head.adopted_attempt_id is None:
        return []
    attempts = attempt_queries.attempts_by_id(session, (base.adopted_attempt_id, head.adopted_attempt_id))
    return differing_fields(attempts[base.adopted_attempt_id], attempts[head.adopted_attempt_id])


def _fresh(base: Job) -> Job:
    return Job(
        run_id=base.run_id, kind=base.kind, arm=base.arm, commit_sha=base.commit_sha, kernel_path=base.kernel_path,
        lane_name=base.lane_name, lane_hash=base.lane_hash, queue=base.queue, generation=base.generation + 1,
        state=JobState.QUEUED,
    )  # fmt: skip


def _gpu_type(session: Session, job: Job) -> str | None:
    if job.lane_name is None:
        return None
    return Lane.model_validate(run_queries.lane_of(session, job.run_id, job.lane_name).lane).gpu_type
