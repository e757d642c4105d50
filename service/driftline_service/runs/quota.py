"""What one repository may ask of everybody's machines: runs a day, and jobs that are not done. Pages never count."""

from datetime import datetime, timedelta

from sqlalchemy import func, select, text
from sqlalchemy.orm import Session

from driftline_service.database.job_queries import UNFINISHED
from driftline_service.database.tables import Job, Repository, Run
from driftline_service.intake.refusal import Refusal
from driftline_service.settings import Quota

DAY = timedelta(days=1)

A_WHILE = timedelta(minutes=1)
"""After which asking again makes sense where jobs are in the way: one may have ended."""


def check_quota(session: Session, repository_url: str, quota: Quota, now: datetime) -> None:
    """Let one more run pass, in the transaction that will write it: requests for one repository take turns here.

    Raises:
        Refusal: 429, too_many_runs or too_many_jobs, with the time after which it may pass.
    """
    if not (quota.runs_a_day or quota.unfinished_jobs):
        return
    session.execute(text("select pg_advisory_xact_lock(hashtextextended(:url, 6))"), {"url": repository_url})
    if quota.runs_a_day:
        _check_runs(session, repository_url, quota.runs_a_day, now)
    if quota.unfinished_jobs:
        _check_jobs(session, repository_url, quota.unfinished_jobs)


def _check_runs(session: Session, url: str, most: int, now: datetime) -> None:
    begun = select(Run.created_at).join(Repository).where(Repository.url == url, Run.created_at > now - DAY)
    newest = session.scalars(begun.order_by(Run.created_at.desc()).limit(most)).all()
    if len(newest) < most:
        return
    free = newest[-1] + DAY
    raise Refusal(
        "too_many_runs",
        f"{url} had {most} runs within a day, which is all it may have; the next one may come at {free:%Y-%m-%d %H:%M} UTC. An "
        "admin can raise DRIFTLINE_RUNS_A_DAY",
        status=429, retry_after=free - now,
    )  # fmt: skip


def _check_jobs(session: Session, url: str, most: int) -> None:
    query = select(func.count()).select_from(Job).join(Run, Run.id == Job.run_id).join(Repository)
    waiting = session.execute(query.where(Repository.url == url, Job.state.in_(UNFINISHED))).scalar_one()
    if waiting < most:
        return
    raise Refusal(
        "too_many_jobs",
        f"{url} has {waiting} jobs that are not done, and may have {most} before another run; wait, or cancel a run. An admin "
        "can raise DRIFTLINE_UNFINISHED_JOBS",
        status=429, retry_after=A_WHILE,
    )  # fmt: skip
