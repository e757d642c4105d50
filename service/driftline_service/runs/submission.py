"""A planned request becomes rows: run, lanes, jobs, outbox and event in one transaction."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

from driftline.contracts.impact import ImpactView
from driftline.contracts.kernel_jobs import Suite, TritonRelease
from driftline.contracts.lane import Lane
from driftline.contracts.words import Arm, Engine, JobState, Layout, RunState
from driftline.judge.stopping import BLOCK
from sqlalchemy.orm import Session

from driftline_service.database import job_queries, run_queries
from driftline_service.database.event_queries import record
from driftline_service.database.tables import Job, OutboxMessage, Run, RunLane
from driftline_service.runs import baselines, planner


@dataclass(frozen=True, slots=True)
class Commit:
    """One arm's code, resolved: nothing here is looked up again."""

    ref: str
    """as it was asked for: a branch, a tag or a SHA"""
    sha: str
    subject: str
    kernel_path: str
    """the kernels' folder inside the tree, e.g. kernels/src/mamba2_varlen"""
    kernel_tree: str
    """git's tree id of everything that decides what is measured: equal ids are byte-identical code"""


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRun:
    """A request that was understood: every name is resolved, every lane is known."""

    name: str
    repository_url: str
    main_branch: str
    layout: Layout
    base: Commit
    head: Commit
    lanes: tuple[Lane, ...]
    margin: float
    """of exact_match, as a fraction: 0.025 is two and a half points"""
    created_by: str
    questions: int | None = None
    """asks so many questions on every lane instead of the lane's own number, at most all of the task's"""
    early_stopping: bool | None = None
    """whether lanes of engine hf may stop before all questions are asked; None: as each lane says"""
    confirm: bool | None = None
    """whether a first hit is measured once more; None: as each lane says"""
    repeats: int = 0
    """pairs of each lane beyond the first"""
    measure_noise: bool = False
    """evaluates both arms afresh, even if they are the same code"""
    unreachable: Mapping[str, str] = field(default_factory=dict)
    """lane name -> why no changed file can reach its backend"""
    conflicts: tuple[str, ...] = ()
    """files in which head cannot be merged into its target: it is measured alone all the same"""
    impact: ImpactView | None = None
    """what the change reaches by the imports at head"""
    tritons: tuple[TritonRelease, ...] = ()
    """under which kernels are compiled; none: the worker's own alone"""
    suite: Suite | None = None
    """the repository's own kernel tests"""
    idempotency_key: str | None = None


def submit(session: Session, new: NewRun) -> UUID:
    """Write the run in the caller's transaction; the caller commits. The same idempotency key gives the same run again.

    Raises:
        ValueError: if there is no lane, two lanes share a name, or `questions` is more than a task has or below 1.
    """
    lanes = _planned_lanes(new)
    run_id = run_queries.insert_run(session, _run_values(session, new))
    if run_id is None:
        assert new.idempotency_key is not None  # noqa: S101 - only a taken key conflicts
        return run_queries.run_with_key(session, new.idempotency_key)
    session.add_all(_lane_row(run_id, position, planned, new) for position, planned in enumerate(lanes))
    planned = planner.planned_jobs(lanes, new.repeats, tritons=new.tritons, suite=new.suite)
    jobs = [_job_row(run_id, one, new) for one in planned]
    session.add_all(jobs)
    session.flush()  # the jobs' ids
    sendings = job_queries.sendings_of(session, jobs)
    first = baselines.not_awaited(
        session, session.get_one(Run, run_id), planner.in_phase(RunState.QUEUED, jobs), sendings
    )
    session.add_all(OutboxMessage(job_id=job.id) for job in first)
    record(session, run_id, "run_submitted", f"{new.head.sha} against {new.base.sha} on {len(lanes)} lanes")
    session.flush()
    return run_id


def _planned_lanes(new: NewRun) -> list[planner.PlannedLane]:
    names = [lane.name for lane in new.lanes]
    if not names or len(set(names)) < len(names):
        raise ValueError(f"a run needs at least one lane, each once; got {names}")
    identical = _identical(new)
    lanes = [_sparing(_asked(lane, new.questions), new) for lane in new.lanes]
    return [
        planner.PlannedLane(lane, planner.hash_lane(lane), skipped=bool(identical or lane.name in new.unreachable))
        for lane in lanes
    ]


def _asked(lane: Lane, questions: int | None) -> Lane:
    if questions is None:
        return lane
    if not 1 <= questions <= lane.task.total_questions:
        total = lane.task.total_questions
        raise ValueError(f"questions {questions}: lane {lane.name!r} can ask 1 to {total}")
    return lane.model_copy(update={"questions": questions})


def _sparing(lane: Lane, new: NewRun) -> Lane:
    """The lane with this run's word on stopping early and on confirmation. A noise floor compares whole evaluations, so
    there it never stops early; nor does one block of questions, which would pay for looks that it never has."""
    wanted = lane.early_stopping if new.early_stopping is None else new.early_stopping
    early = wanted and lane.engine is Engine.HF and not new.measure_noise and lane.questions > BLOCK
    confirm = lane.confirm if new.confirm is None else new.confirm
    return lane.model_copy(update={"early_stopping": early, "confirm": confirm})


def _identical(new: NewRun) -> str | None:
    if new.measure_noise or new.base.kernel_tree != new.head.kernel_tree:
        return None
    return f"the kernels of both arms are byte-identical (tree {new.head.kernel_tree[:12]})"


def _run_values(session: Session, new: NewRun) -> dict[str, object]:
    arms = {"base": new.base, "head": new.head}
    resolved = {
        f"{arm}_{name}": getattr(commit, name)
        for arm, commit in arms.items()
        for name in ("ref", "sha", "subject", "kernel_path", "kernel_tree")
    }
    plain = ("name", "layout", "margin", "measure_noise", "repeats", "created_by", "idempotency_key")
    repository_id = run_queries.repository_id(session, new.repository_url, new.main_branch)
    impact = None if new.impact is None else new.impact.model_dump(mode="json")
    configured = {
        "tritons": [one.model_dump(mode="json") for one in new.tritons] or None,
        "suite": None if new.suite is None else new.suite.model_dump(mode="json"),
    }
    plain_values = {name: getattr(new, name) for name in plain}
    return resolved | plain_values | configured | {"repository_id": repository_id, "impact": impact}


def _lane_row(run_id: UUID, position: int, planned: planner.PlannedLane, new: NewRun) -> RunLane:
    name = planned.lane.name
    return RunLane(
        run_id=run_id, position=position, name=name, lane=planned.lane.model_dump(mode="json"),
        lane_hash=planned.lane_hash, identical=_identical(new), unreachable=new.unreachable.get(name),
    )  # fmt: skip


def _job_row(run_id: UUID, planned: planner.PlannedJob, new: NewRun) -> Job:
    commit = new.base if planned.arm is Arm.BASE else new.head
    return Job(
        run_id=run_id, kind=planned.kind, arm=planned.arm, commit_sha=commit.sha, kernel_path=commit.kernel_path,
        lane_name=planned.lane_name, lane_hash=planned.lane_hash, queue=planned.queue, pair=planned.pair, generation=0,
        state=JobState.QUEUED,
    )  # fmt: skip
