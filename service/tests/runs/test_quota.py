"""What one repository may ask for, and what it is told when that is used up."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

import pytest
from driftline_service.clock import now_utc
from driftline_service.database.tables import Run
from driftline_service.intake.refusal import Refusal
from driftline_service.runs.cancellation import cancel
from driftline_service.runs.quota import check_quota
from driftline_service.runs.submission import submit
from driftline_service.settings import Quota
from sqlalchemy import func, select, update

ONE, OTHER = "https://example.org/kernels.git", "https://example.org/other.git"


def asked(world, quota: Quota, url: str = ONE) -> UUID:
    with world.sessions.begin() as session:
        check_quota(session, url, quota, now_utc())
        return submit(session, world.new_run(repository_url=url))


def test_runs_a_day_are_counted_by_repository_and_forgotten_after_a_day(world) -> None:
    quota = Quota(runs_a_day=2)
    first = asked(world, quota)
    asked(world, quota)
    asked(world, quota, OTHER)
    with pytest.raises(Refusal, match=r"had 2 runs within a day.* the next one may come at 20") as refused:
        asked(world, quota)
    assert (refused.value.reason, refused.value.status) == ("too_many_runs", 429)
    assert timedelta(hours=23) < refused.value.retry_after <= timedelta(days=1)
    with world.sessions.begin() as session:
        session.execute(update(Run).where(Run.id == first).values(created_at=now_utc() - timedelta(days=1, seconds=1)))
    asked(world, quota)


def test_unfinished_jobs_stand_in_the_way_until_they_end(world) -> None:
    quota = Quota(unfinished_jobs=6)
    first = asked(world, quota)  # two builds, two checks, two evaluations
    with pytest.raises(Refusal, match="has 6 jobs that are not done, and may have 6") as refused:
        asked(world, quota)
    assert (refused.value.reason, refused.value.status) == ("too_many_jobs", 429)
    with world.sessions.begin() as session:
        assert cancel(session, first, "a test")
    asked(world, quota)


def test_requests_at_once_get_no_more_than_the_quota(world) -> None:
    def try_once(_: int) -> bool:
        try:
            asked(world, Quota(runs_a_day=3))
        except Refusal:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(try_once, range(8))) == 3
    with world.sessions() as session:
        assert session.scalar(select(func.count()).select_from(Run)) == 3


def test_no_quota_is_no_limit(world) -> None:
    for _ in range(3):
        asked(world, Quota())
