"""The App removed, suspended, installed again: what runs is stopped, what cannot be shown is let go, and work begins anew."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from secrets import randbelow
from typing import Any
from uuid import uuid4

import pytest
from driftline.contracts.words import RunState
from driftline_service.database.tables import Event, GithubSource, Job, Repository, Run
from driftline_service.runs.priority import MAIN_KEY
from sqlalchemy import select, update

ENDS = [
    ("deleted", (404, "Not Found"), "removed"),
    ("suspend", (403, "This installation has been suspended"), "suspended"),
]


def _told(side: Any, run: Run) -> list[str]:
    """Why a run ended, as its log says."""
    with side.sessions() as session:
        query = select(Event.message).where(Event.run_id == run.id, Event.kind == "run_cancelled")
        return list(session.scalars(query))


@contextmanager
def _elsewhere(side: Any, name: str | None = None) -> Iterator[str]:
    """Another repository of the same account."""
    before, side.name = side.name, name or f"acme/other-{uuid4().hex[:8]}"
    try:
        yield side.name
    finally:
        side.name = before


def _open(side: Any) -> Run:
    side.send("pull_request", side.pull_request())
    side.work()
    return side.runs()[0]


@pytest.mark.parametrize(("action", "answer", "word"), ENDS)
def test_what_runs_is_stopped_and_nothing_more_is_sent(
    side: Any, action: str, answer: tuple[int, str], word: str
) -> None:
    with _elsewhere(side) as other:
        _open(side)
    run = _open(side)
    with side.sessions.begin() as session:
        session.execute(update(Run).where(Run.id == run.id).values(state=RunState.EVALUATING))
    side.github.no_token = answer
    side.installed(action)
    tried = side.tried()
    side.work()
    assert side.runs()[0].state is RunState.CANCELLED
    assert _told(side, run) == [f"the GitHub App was {word}"]
    with side.sessions() as session:
        jobs = session.scalars(select(Job.state).where(Job.run_id == run.id)).all()
        assert session.get(GithubSource, str(side.repository)) is None
    assert set(jobs) == {"cancelled"}
    with _elsewhere(side, other):
        assert side.runs()[0].state is RunState.CANCELLED  # not only of the repositories that the event names
    assert side.pull().last_error == f"the GitHub App was {word}"
    for _ in range(4):
        side.ahead[0] += timedelta(days=1)
        side.work()
    assert side.tried() == tried


def test_another_installation_is_left_alone(side: Any) -> None:
    _open(side)
    side.installation += 1
    side.installed("deleted", repositories=[])
    side.work()
    assert side.runs()[0].state is RunState.QUEUED


def test_fewer_repositories_stop_theirs_alone(side: Any) -> None:
    with _elsewhere(side) as other:
        _open(side)
    run = _open(side)
    side.sees("removed", removed=(side.name,))
    side.work()
    assert side.runs()[0].state is RunState.CANCELLED
    assert _told(side, run) == ["the GitHub App was removed from this repository"]
    with _elsewhere(side, other):
        assert side.runs()[0].state is RunState.QUEUED


def test_what_was_told_before_and_waits_does_not_begin_again(side: Any) -> None:
    side.send("pull_request", side.pull_request())
    side.installed("suspend")
    while side.desk.step():
        pass
    (run,) = side.runs()
    assert run.state is RunState.CANCELLED
    side.github.outage = [502]
    side.send("issue_comment", side.comment("/driftline run"))
    side.work()
    side.installed("suspend")
    side.work()
    side.ahead[0] = timedelta(minutes=5)
    side.work()
    assert side.outcomes()[-1] == "dropped: the GitHub App was suspended"
    assert [each.id for each in side.runs()] == [run.id]


def test_a_suspension_that_ends_shows_the_present_and_takes_work(side: Any) -> None:
    _open(side)
    side.installed("suspend")
    side.work()
    assert "queued" in side.shown
    assert [check.get("conclusion") for check in side.github.checks.values()] == [None]
    side.installed("unsuspend")
    side.work()
    assert "Stopped: the GitHub App was suspended. `/driftline run` measures the head again." in side.shown
    assert [check.get("conclusion") for check in side.github.checks.values()] == ["cancelled"]
    side.send("issue_comment", side.comment("/driftline run"))
    side.work()
    assert [run.state for run in side.runs()] == [RunState.CANCELLED, RunState.QUEUED]
    assert "Stopped" not in side.shown


@pytest.mark.parametrize("by", ["installation", "installation_repositories"])
def test_a_new_installation_takes_over_what_the_old_one_had(side: Any, by: str) -> None:
    _open(side)
    side.installed("deleted")
    side.work()
    side.installation = randbelow(1 << 40)
    side.installed("created") if by == "installation" else side.sees("added", added=(side.name,))
    side.work()
    pull = side.pull()
    assert (pull.installation_id, pull.last_error) == (side.installation, None)
    assert "Stopped: the GitHub App was removed" in side.shown
    side.send("pull_request", side.pull_request("reopened"))
    side.work()
    assert [run.state for run in side.runs()] == [RunState.CANCELLED, RunState.QUEUED]


def test_baselines_of_main_that_it_asked_for_stop_too(side: Any) -> None:
    run = _open(side)
    side.clone_url = f"https://github.example.org/{side.name}.git"
    side.send("ping", side.common())
    side.send("push", side.common() | {"ref": "refs/heads/other", "before": "a" * 40, "after": "b" * 40})
    side.work()
    with side.sessions.begin() as session:
        source = Repository(url=side.clone_url, main_branch="main")
        session.add(source)
        session.flush()
        values = {"idempotency_key": f"{MAIN_KEY}{run.id}", "repository_id": source.id}
        session.execute(update(Run).where(Run.id == run.id).values(**values))
    side.sees("removed", removed=(side.name,))
    side.work()
    assert side.runs()[0].state is RunState.CANCELLED


@pytest.mark.parametrize(("_action", "answer", "_word"), ENDS)
def test_if_the_event_never_comes_nothing_is_tried_for_ever(
    side: Any, _action: str, answer: tuple[int, str], _word: str
) -> None:
    side.github.no_token = answer
    side.send("pull_request", side.pull_request())
    side.work()
    tried = side.tried()
    for _ in range(5):
        side.ahead[0] += timedelta(days=1)
        side.work()
    assert side.tried() == tried
    assert "no token" in side.pull().last_error
    side.github.no_token = None
    side.installed("unsuspend")
    side.work()
    assert "queued" in side.shown


@pytest.mark.parametrize("action", ["suspend", "deleted"])
def test_of_a_shape_that_is_none_nothing_follows(side: Any, action: str) -> None:
    _open(side)
    side.send("installation", {"action": action, "installation": {"id": "none"}})
    side.send("installation", {"action": action})
    side.send("installation_repositories", {"action": "removed", "installation": {"id": side.installation}})
    side.installed("renamed")
    side.work()
    assert side.runs()[0].state is RunState.QUEUED
