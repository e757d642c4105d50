"""Jobs as readers see them: state, attempts, and how far the latest one is."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from driftline.contracts.report import JobView
from driftline.contracts.words import Arm, JobKind
from sqlalchemy.orm import Session

from driftline_service.database import attempt_queries, job_queries, run_queries
from driftline_service.database.tables import Attempt, Job


@dataclass(frozen=True, slots=True)
class Tries:
    """A job's attempts: how many, and the latest."""

    count: int
    latest: Attempt


def job_views(session: Session, run_id: UUID) -> tuple[JobView, ...]:
    """The run's jobs in the order of their phases, lanes as they were asked for, base before head."""
    lanes = [lane.name for lane in run_queries.lanes_of(session, run_id)]
    return job_views_of(job_queries.jobs_of(session, run_id), tries_of(session, run_id), lanes)


def tries_of(session: Session, run_id: UUID) -> dict[UUID, Tries]:
    """The attempts of each job that has any."""
    tries: dict[UUID, Tries] = {}
    for attempt in attempt_queries.attempts_of_run(session, run_id):
        before = tries.get(attempt.job_id)
        tries[attempt.job_id] = Tries(1 if before is None else before.count + 1, attempt)
    return tries


def job_views_of(jobs: Iterable[Job], tries: Mapping[UUID, Tries], lanes: Sequence[str]) -> tuple[JobView, ...]:
    """As `job_views`, from rows."""
    kinds, arms = list(JobKind), list(Arm)

    def place(job: Job) -> tuple[int, int, int, int, int]:
        lane = -1 if job.lane_name is None else lanes.index(job.lane_name)
        return kinds.index(job.kind), job.pair, lane, arms.index(job.arm), job.generation

    return tuple(_view(job, tries.get(job.id)) for job in sorted(jobs, key=place))


def _view(job: Job, tries: Tries | None) -> JobView:
    latest = None if tries is None else tries.latest
    message = job.message
    if job.reused_from_job_id is not None:
        message = "reused from an earlier run"
    elif job.import_id is not None:
        message = "reported by a person, promoted to baseline"
    return JobView(
        job_id=job.id, kind=job.kind, arm=job.arm, lane=job.lane_name, pair=job.pair, state=job.state,
        attempts=0 if tries is None else tries.count, message=message,
        phase=None if latest is None else latest.phase, done=None if latest is None else latest.done,
        total=None if latest is None else latest.total, started_at=job.started_at, finished_at=job.finished_at,
    )  # fmt: skip
