"""What the comment says before anything is measured: the place in the queue, and the drop that can be seen."""

import re
from typing import Any
from uuid import UUID, uuid4

import pytest
from driftline.statistics.power import mcnemar_power
from driftline_service.database import job_queries
from driftline_service.database.tables import GithubRun, Job, Run
from driftline_service.github.outlook import smallest_visible
from driftline_service.runs.priority import MAIN_KEY
from sqlalchemy import delete, update


def _take_in(side: Any, number: int, queue: str) -> UUID:
    """A pull request's run, whose jobs wait on this queue; nothing is shown yet."""
    event = side.pull_request()
    side.send("pull_request", event | {"number": number, "pull_request": event["pull_request"] | {"number": number}})
    while side.desk.step():
        pass
    run_id: UUID = side.runs()[-1].id
    with side.sessions.begin() as session:
        session.execute(update(Job).where(Job.run_id == run_id).values(queue=queue))
    return run_id


def test_the_comment_tells_the_place_in_the_queue_and_the_smallest_visible_drop(side: Any) -> None:
    queue = f"queue-{uuid4().hex}"  # of this test alone
    first = _take_in(side, 7, queue)
    side.showcase.step()
    assert ": queued, the next in line. [Watch it]" in side.shown
    assert re.search(r"The smallest visible drop is \d+\.\d points, found four times in five", side.shown)
    _take_in(side, 8, "of another GPU")
    side.github.comments.clear()
    last = _take_in(side, 9, queue)
    side.showcase.step()
    assert sum(": queued behind 1 run. [Watch it]" in said for said in side.github.comments.values()) == 1
    with side.sessions() as session:
        assert (job_queries.runs_before(session, first), job_queries.runs_before(session, last)) == (0, 1)
    side.send("issue_comment", side.comment("/driftline cancel"))
    side.github.comments.clear()
    side.work()
    assert "in line" not in side.shown
    assert "visible drop" not in side.shown


def test_one_whom_nobody_waits_for_is_behind_whoever_comes_later(side: Any) -> None:
    queue = f"queue-{uuid4().hex}"
    baseline, later = _take_in(side, 7, queue), _take_in(side, 8, queue)
    with side.sessions.begin() as session:
        session.execute(delete(GithubRun).where(GithubRun.run_id == baseline))
        session.execute(update(Run).where(Run.id == baseline).values(idempotency_key=f"{MAIN_KEY}{baseline}"))
    with side.sessions() as session:
        assert (job_queries.runs_before(session, baseline), job_queries.runs_before(session, later)) == (1, 0)


def test_the_drop_that_is_named_is_found_four_times_in_five() -> None:
    drop = smallest_visible([300, 1319])
    assert drop is not None
    assert mcnemar_power(drop, 0.0, 300, alpha=0.05 / 6) == pytest.approx(0.8, abs=1e-3)
    assert smallest_visible([]) is None
    assert smallest_visible([2]) is None
