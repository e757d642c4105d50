"""What is left of a run, from what such jobs took."""

from datetime import UTC, datetime, timedelta

import pytest
from driftline.contracts.words import JobKind
from driftline_service.database.tables import Attempt, Job
from driftline_service.runs.forecast import Open, forecast, remaining_seconds
from driftline_service.runs.submission import Commit
from sqlalchemy import select, update

NOW = datetime(2026, 12, 2, 12, tzinfo=UTC)
BUILD, CHECK = (JobKind.BUILD, None), (JobKind.CHECK, None)
V1 = (JobKind.EVALUATE, "canary V1")
USUAL = {BUILD: 40.0, V1: 100.0}


def _since(seconds):
    return NOW - timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("still_open", "expected"),
    [
        ([], 0.0),
        ([Open(BUILD, None)], 40.0),
        ([Open(BUILD, _since(30))], 10.0),
        ([Open(BUILD, _since(500))], 4.0),  # late: a tenth of the usual, not nothing
        ([Open(V1, _since(40)), Open(V1, _since(20)), Open(V1, None)], (60.0 + 80.0 + 100.0) / 2),
        ([Open(V1, None), Open(CHECK, None)], None),  # no check was ever done
    ],
)
def test_the_rest_is_shared_among_those_at_work(still_open, expected):
    assert forecast(still_open, USUAL, NOW) == expected


def test_a_first_run_has_no_forecast_and_a_second_one_has(world):
    first = world.submit()
    with world.sessions() as session:
        assert remaining_seconds(session, first, NOW) is None
    world.run_until_done(first)
    head = Commit(ref="fix", sha="f" * 40, subject="a fix", kernel_path="kernels", kernel_tree="f" * 40)
    second = world.submit(head=head)
    with world.sessions.begin() as session:
        session.execute(update(Attempt).values(created_at=NOW - timedelta(seconds=90), finished_at=NOW))
        jobs = [job for job in session.scalars(select(Job).where(Job.run_id == second)) if not job.state.finished]
        assert remaining_seconds(session, second, NOW) == pytest.approx(90.0 * len(jobs))
