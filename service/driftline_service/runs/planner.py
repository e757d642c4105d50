"""Which jobs a run has and when it moves on: pure functions of plain values."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Protocol, TypeVar

from driftline.contracts.base import Contract
from driftline.contracts.kernel_jobs import Suite, TritonRelease
from driftline.contracts.lane import Lane
from driftline.contracts.words import Arm, JobKind, JobState, RunState
from driftline.contracts.worker_api import QUEUE_CPU, queue_of

PHASES = {
    RunState.QUEUED: (JobKind.BUILD,),
    RunState.BUILDING: (JobKind.BUILD,),
    RunState.CHECKING: (JobKind.CHECK, JobKind.TESTS),
    RunState.EVALUATING: (JobKind.EVALUATE,),
}
"""The kinds of job that may run in each state. Phases follow each other, so that a cheap failure is seen first; both
arms and all lanes of one phase run side by side."""

_NEXT = {
    RunState.BUILDING: RunState.CHECKING,
    RunState.CHECKING: RunState.EVALUATING,
    RunState.EVALUATING: RunState.JUDGING,
}

SOURCE_GONE = frozenset({"unknown_commit", "unreachable_repository", "not_a_repository"})
"""driftline.git's reasons after which nothing can be measured: the run fails instead of judging an empty comparison."""


class JobFacts(Protocol):
    """What the planner looks at; a row of `jobs` is one."""

    kind: JobKind
    arm: Arm
    lane_name: str | None
    pair: int
    generation: int
    state: JobState
    failure_reason: str | None


_Job = TypeVar("_Job", bound=JobFacts)


@dataclass(frozen=True, slots=True)
class PlannedLane:
    """A lane of a new run; `skipped` says why nothing is evaluated on it."""

    lane: Lane
    lane_hash: str
    skipped: bool


@dataclass(frozen=True, slots=True)
class PlannedJob:
    kind: JobKind
    arm: Arm
    queue: str
    lane_name: str | None = None
    lane_hash: str | None = None
    pair: int = 0


def hash_lane(lane: Lane) -> str:
    """sha256 of what a lane measures. Its name is a label: renaming a lane keeps its baselines; so does stopping early,
    since an evaluation that was stopped is no baseline itself, and what vLLM calls the model, which only tells readers."""
    measured = lane.model_dump_json(
        exclude={"name": True, "early_stopping": True, "confirm": True, "model": {"architecture"}}
    )
    return sha256(measured.encode()).hexdigest()


def hash_of(*configured: Contract) -> str | None:
    """sha256 of what a build or the tests are configured with: work under another is no baseline. None of nothing."""
    if not configured:
        return None
    return sha256("\n".join(one.model_dump_json() for one in configured).encode()).hexdigest()


def planned_jobs(
    lanes: Iterable[PlannedLane], repeats: int = 0, *, tritons: Sequence[TritonRelease] = (), suite: Suite | None = None
) -> list[PlannedJob]:
    """Build and check of both arms, their own tests if there are any, and both arms of each lane that is not skipped,
    once and `repeats` times more."""
    jobs = [PlannedJob(JobKind.BUILD, arm, QUEUE_CPU, lane_hash=hash_of(*tritons)) for arm in Arm]
    jobs += [PlannedJob(JobKind.CHECK, arm, QUEUE_CPU) for arm in Arm]
    if suite is not None:
        jobs += [PlannedJob(JobKind.TESTS, arm, queue_of(suite.gpu_type), lane_hash=hash_of(suite)) for arm in Arm]
    for planned in lanes:
        if not planned.skipped:
            queue = queue_of(planned.lane.gpu_type)
            jobs += [
                PlannedJob(JobKind.EVALUATE, arm, queue, planned.lane.name, planned.lane_hash, pair)
                for pair in range(repeats + 1)
                for arm in Arm
            ]
    return jobs


def current(jobs: Iterable[_Job]) -> list[_Job]:
    """Of each (kind, arm, lane, pair) the highest generation."""
    latest: dict[tuple[JobKind, Arm, str | None, int], _Job] = {}
    for job in jobs:
        key = (job.kind, job.arm, job.lane_name, job.pair)
        if key not in latest or latest[key].generation < job.generation:
            latest[key] = job
    return list(latest.values())


def in_phase(state: RunState, jobs: Iterable[_Job]) -> list[_Job]:
    """The current jobs that may run in this state. A lane's pairs follow each other: where the first one stops is known
    before the next one asks."""
    found = [job for job in current(jobs) if job.kind in PHASES.get(state, ())]
    pairs = {job.lane_name: job.pair for job in sorted(found, key=lambda job: -job.pair) if not job.state.finished}
    return [job for job in found if job.pair <= pairs.get(job.lane_name, job.pair)]


def deciding(jobs: Iterable[_Job]) -> list[_Job]:
    """The current jobs less those of pairs after the first: what a verdict is made from."""
    return [job for job in current(jobs) if job.pair == 0]


def next_state(state: RunState, jobs: Sequence[JobFacts]) -> RunState | None:
    """The state that follows by what the jobs have come to, or None to wait. Judging ends elsewhere."""
    phase = in_phase(state, jobs)
    if state is RunState.QUEUED:
        return RunState.BUILDING if any(job.state is not JobState.QUEUED for job in phase) else None
    if state in _NEXT and all(job.state.finished for job in phase):
        return _NEXT[state]
    return None


def source_gone(jobs: Iterable[_Job]) -> _Job | None:
    """A job that failed because there is nothing to measure any more."""
    failed = (job for job in jobs if job.state is JobState.FAILED and job.failure_reason in SOURCE_GONE)
    return next(failed, None)
