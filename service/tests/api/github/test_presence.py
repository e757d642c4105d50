"""The App was taken away and the webhook that says so never came: GitHub is asked, and what runs ends."""

from datetime import timedelta
from typing import Any

import pytest
from driftline.contracts.words import RunState
from driftline_service.database.tables import Event, Repository, Run
from driftline_service.runs.priority import MAIN_KEY
from sqlalchemy import select, update

REMOVED = "GitHub says that the App is not installed on this repository any more"


def measured(side: Any) -> Run:
    side.send("pull_request", side.pull_request())
    side.work()
    (run,) = side.runs()
    return run


def minutes_later(side: Any, minutes: float) -> RunState:
    """What became of the pull request's latest run by then."""
    side.ahead[0] += timedelta(minutes=minutes)
    side.presence.step()
    return side.runs()[-1].state


def questions(side: Any) -> int:
    return side.github.calls.count(("GET", f"/repos/{side.name}/installation"))


def reasons(side: Any, run: Run) -> list[str]:
    with side.sessions() as session:
        query = select(Event.message).where(Event.run_id == run.id, Event.kind == "run_cancelled")
        return list(session.scalars(query))


def test_a_repository_that_was_taken_away_ends_its_runs_alone(side: Any) -> None:
    gone, run = side.name, measured(side)
    side.name = f"{gone}-other"
    measured(side)
    side.github.not_installed = {gone}
    assert minutes_later(side, 1) is RunState.QUEUED
    assert minutes_later(side, 1.5) is RunState.QUEUED
    side.name = gone
    assert side.runs()[0].state is RunState.CANCELLED
    assert reasons(side, run) == [REMOVED]
    pull = side.pull()
    assert pull.last_error == REMOVED
    assert pull.notice == f"Stopped: {REMOVED}. `/driftline run` measures the head again."
    asked = questions(side)
    assert minutes_later(side, 60) is RunState.CANCELLED
    assert questions(side) == asked  # nothing of it runs any more


def test_an_app_that_is_suspended_ends_what_runs(side: Any) -> None:
    run = measured(side)
    side.github.suspended = True
    minutes_later(side, 1)
    assert minutes_later(side, 1.5) is RunState.CANCELLED
    assert reasons(side, run) == ["GitHub says that the App is suspended"]


def test_one_answer_is_not_enough(side: Any) -> None:
    measured(side)
    side.github.not_installed = {side.name}
    minutes_later(side, 1)
    side.github.not_installed = set()
    minutes_later(side, 1.5)
    side.github.not_installed = {side.name}
    assert minutes_later(side, 31) is RunState.QUEUED
    assert minutes_later(side, 0.5) is RunState.QUEUED  # not asked again so soon
    assert minutes_later(side, 1) is RunState.CANCELLED


@pytest.mark.parametrize("outage", [500, 403, 429])
def test_a_github_that_is_away_or_limits_ends_nothing_and_is_let_alone(side: Any, outage: int) -> None:
    measured(side)
    side.github.not_installed = {side.name}
    side.github.outage = [outage]
    minutes_later(side, 1)
    asked = questions(side)
    assert minutes_later(side, 1) is RunState.QUEUED
    assert questions(side) == asked
    assert minutes_later(side, 31) is RunState.QUEUED
    assert minutes_later(side, 1.5) is RunState.CANCELLED


def test_where_nothing_speaks_against_it_it_is_asked_twice_an_hour(side: Any) -> None:
    measured(side)
    for _ in range(60):
        assert minutes_later(side, 1) is RunState.QUEUED
    assert questions(side) == 2


def test_a_run_that_github_does_not_let_us_show_is_asked_about_soon(side: Any) -> None:
    measured(side)
    minutes_later(side, 1)
    side.github.outage, side.github.not_installed = [404, 404], {side.name}
    with side.sessions.begin() as session:
        session.execute(update(Run).where(Run.id == side.runs()[0].id).values(state=RunState.BUILDING))
    side.work()
    assert "404" in side.pull().last_error
    minutes_later(side, 1.5)
    assert minutes_later(side, 1.5) is RunState.CANCELLED


def test_a_baseline_of_main_ends_too_and_a_return_begins_anew(side: Any) -> None:
    run = measured(side)
    side.clone_url = f"https://github.example.org/{side.name}.git"
    side.send("push", side.common() | {"ref": "refs/heads/other", "before": "a" * 40, "after": "b" * 40})
    side.work()
    with side.sessions.begin() as session:
        source = Repository(url=side.clone_url, main_branch="main")
        session.add(source)
        session.flush()
        values = {"idempotency_key": f"{MAIN_KEY}{run.id}", "repository_id": source.id}
        session.execute(update(Run).where(Run.id == run.id).values(**values))
    side.github.not_installed = {side.name}
    minutes_later(side, 1)
    assert minutes_later(side, 1.5) is RunState.CANCELLED
    side.github.not_installed, side.clone_url = set(), ""
    side.sees("added", added=(side.name,))
    side.send("pull_request", side.pull_request("reopened"))
    side.work()
    assert [each.state for each in side.runs()] == [RunState.CANCELLED, RunState.QUEUED]
