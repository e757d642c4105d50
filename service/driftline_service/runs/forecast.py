"""How long a run will take, from how long such jobs took before."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from driftline.contracts.words import JobKind, JobState
from sqlalchemy import text
from sqlalchemy.orm import Session

from driftline_service.database import job_queries

HISTORY = 20
"""Of each sort of job so many of the latest are looked at: machines and lanes change."""

Sort = tuple[JobKind, str | None]
"""What takes about equally long: a kind, and for an evaluation its lane."""

_DURATIONS = text("""
    select kind, lane_name, percentile_disc(0.5) within group (order by seconds)
    from (
        select jobs.kind, jobs.lane_name, extract(epoch from attempts.finished_at - attempts.created_at) as seconds,
               row_number() over (partition by jobs.kind, jobs.lane_name order by attempts.finished_at desc) as age
        from attempts join jobs on jobs.adopted_attempt_id = attempts.id
        where jobs.state = 'succeeded'
    ) as past
    where age <= :history group by kind, lane_name
""")


@dataclass(frozen=True, slots=True)
class Open:
    """A job that is not finished, and since when it runs; None if it waits."""

    sort: Sort
    running_since: datetime | None


def remaining_seconds(session: Session, run_id: UUID, now: datetime) -> float | None:
    """Seconds of work until the run's last job ends, other runs not counted; None if a job of its sort was never done."""
    jobs = [job for job in job_queries.jobs_of(session, run_id) if not job.state.finished]
    still_open = [
        Open((job.kind, job.lane_name), job.started_at if job.state is JobState.RUNNING else None) for job in jobs
    ]
    rows = session.execute(_DURATIONS, {"history": HISTORY})
    return forecast(still_open, {(JobKind(kind), lane): float(seconds) for kind, lane, seconds in rows}, now)


def forecast(still_open: Iterable[Open], usual: Mapping[Sort, float], now: datetime) -> float | None:
    """The work left, divided among as many jobs at once as run now.

    A job that already took longer than usual counts as a tenth of its usual time, never as nothing.
    """
    left, running = 0.0, 0
    for job in still_open:
        if job.sort not in usual:
            return None
        expected = usual[job.sort]
        elapsed = 0.0 if job.running_since is None else (now - job.running_since).total_seconds()
        running += job.running_since is not None
        left += max(expected - elapsed, expected / 10)
    return left / max(running, 1)
