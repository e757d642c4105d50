"""What a worker is asked to do, built from rows. No secret and no database URL is in it."""

from functools import lru_cache

from driftline.contracts.jobs import BuildSpec, CheckSpec, CommitSource, EvaluateSpec, JobSpec, SuiteSpec
from driftline.contracts.kernel_jobs import Suite, TritonRelease
from driftline.contracts.lane import Lane
from driftline.contracts.words import JobKind, Layout
from driftline.judge.stopping import BLOCK
from driftline.questions import fixed_order

from driftline_service.database.tables import Job, Run, RunLane

DEFAULT_BATCH = 16
"""Prompts at a time where a lane says nothing or `auto`: a CPU gains nothing beyond (0.25 s a question)."""

VLLM_BACKENDS = ["triton"]
"""vLLM keeps no torch implementation of these kernels beside the Triton one."""


def spec_of(job: Job, run: Run, lane_row: RunLane | None) -> JobSpec:
    """The job's specification; `lane_row` is given for evaluations and only for them."""
    source = CommitSource(
        url=run.repository.url, sha=job.commit_sha, layout=run.layout, kernel_path=job.kernel_path
    )  # fmt: skip
    match job.kind:
        case JobKind.BUILD:
            tritons = [TritonRelease.model_validate(one) for one in run.tritons or ()]
            return BuildSpec(job_id=job.id, run_id=run.id, arm=job.arm, source=source, tritons=tritons)
        case JobKind.TESTS:
            suite = Suite.model_validate(run.suite)
            return SuiteSpec(job_id=job.id, run_id=run.id, arm=job.arm, source=source, suite=suite)
        case JobKind.CHECK:
            check = CheckSpec(job_id=job.id, run_id=run.id, arm=job.arm, source=source)
            return check.model_copy(update={"backends": VLLM_BACKENDS}) if run.layout is Layout.VLLM else check
        case JobKind.EVALUATE:
            assert lane_row is not None  # noqa: S101 - a CHECK ties the lane to this kind
            return _evaluation(job, run, source, Lane.model_validate(lane_row.lane))


@lru_cache(maxsize=32)
def ranks(total: int, count: int) -> dict[int, int]:
    """doc_id -> its place in the fixed order."""
    return {doc_id: rank for rank, doc_id in enumerate(fixed_order(total, count))}


def lane_ranks(lane: Lane) -> dict[int, int]:
    """What a lane asks: doc_id -> place."""
    return ranks(lane.task.total_questions, lane.questions)


def _evaluation(job: Job, run: Run, source: CommitSource, lane: Lane) -> EvaluateSpec:
    batch = lane.engine_arguments.get("batch_size", DEFAULT_BATCH)
    batch_size = batch if isinstance(batch, int) and batch >= 1 else DEFAULT_BATCH
    return EvaluateSpec(
        job_id=job.id, run_id=run.id, arm=job.arm, source=source, lane=lane, doc_ids=list(lane_ranks(lane)),
        block=BLOCK, batch_size=batch_size,
    )  # fmt: skip
