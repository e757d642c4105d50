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

_USUAL = """
    select percentile_disc(0.5) within group (order by seconds)
    from (
        select extract(epoch from attempts.finished_at - attempts.created_at) as seconds
        from jobs join attempts on attempts.id = jobs.adopted_attempt_id
        where jobs.state = 'succeeded' and jobs.kind = :kind and jobs.lane_name {of_lane}
        order by jobs.finished_at desc limit :history
    ) as past
"""
"""One sort at a time, so that an index gives the latest: a page asks this every second, beside a long history."""

_OF_LANE, _OF_NONE = text(_USUAL.format(of_lane="= :lane")), text(_USUAL.format(of_lane="is null"))


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
    found = {sort: _usual_seconds(session, sort) for sort in {job.sort for job in still_open}}
    return forecast(still_open, {sort: seconds for sort, seconds in found.items() if seconds is not None}, now)


def _usual_seconds(session: Session, sort: Sort) -> float | None:
    kind, lane = sort
    values: dict[str, object] = {"kind": kind.value, "history": HISTORY}
    if lane is not None:
        values["lane"] = lane
    seconds = session.execute(_OF_NONE if lane is None else _OF_LANE, values).scalar_one()
    return None if seconds is None else float(seconds)


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
