"""The lines of the list of runs: what is stored of each, without its judged view, which is large."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from driftline.contracts.words import JobState, RunState
from sqlalchemy import func, select, tuple_
from sqlalchemy.orm import Session

from driftline_service.database.tables import Job, Repository, Run

PAGE = 30
"""runs"""

FINISHED = tuple(state for state in JobState if state.finished)

COLUMNS = (
    Run.id, Run.name, Repository.url, Run.head_sha, Run.head_subject, Run.state, Run.view["verdict"].astext,
    Run.view["kernel_check"]["result"].astext, Run.view["headline"]["color"].astext, Run.failure_message,
    Run.created_at, Run.started_at, Run.finished_at,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run. `verdict`, `kernel_check` and `color` are None until it is judged; progress counts jobs."""

    run_id: UUID
    name: str
    repository: str
    head: str
    head_subject: str
    state: RunState
    verdict: str | None
    kernel_check: str | None
    color: str | None
    failure: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    jobs_done: int = 0
    jobs: int = 0


@dataclass(frozen=True, slots=True)
class RunRows:
    """A page of them, newest first. `older` is the run to continue after, if there are more."""

    rows: tuple[RunRow, ...]
    older: UUID | None

    @property
    def active(self) -> bool:
        return any(not row.state.finished for row in self.rows)


def run_rows(session: Session, *, state: RunState | None = None, before: UUID | None = None) -> RunRows:
    """Runs in `state`, or in any; only older ones than `before`, all if there is no such run."""
    query = select(*COLUMNS).join(Repository).order_by(Run.created_at.desc(), Run.id.desc()).limit(PAGE + 1)
    if state is not None:
        query = query.where(Run.state == state)
    if before is not None and (start := session.get(Run, before)) is not None:
        query = query.where(tuple_(Run.created_at, Run.id) < tuple_(start.created_at, start.id))
    found = session.execute(query).all()
    counted = _job_counts(session, [row[0] for row in found[:PAGE]])
    rows = tuple(_with_progress(RunRow(*row), counted) for row in found[:PAGE])
    return RunRows(rows, rows[-1].run_id if len(found) > PAGE else None)


def _with_progress(row: RunRow, counted: dict[UUID, tuple[int, int]]) -> RunRow:
    done, jobs = counted.get(row.run_id, (0, 0))
    return replace(row, jobs_done=done, jobs=jobs)


def _job_counts(session: Session, run_ids: Sequence[UUID]) -> dict[UUID, tuple[int, int]]:
    """Run -> (finished jobs, jobs)."""
    finished = func.count().filter(Job.state.in_(FINISHED))
    query = select(Job.run_id, finished, func.count()).where(Job.run_id.in_(run_ids)).group_by(Job.run_id)
    return {run_id: (done, total) for run_id, done, total in session.execute(query)}
