"""GitHub away while deliveries are handled: each waits its time, none is lost, and what is about one pull request keeps its
order."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from driftline.contracts.words import RunState
from driftline_service.database.github_queries import AGAIN, MOST_TRIES, put_off
from driftline_service.database.tables import GithubDelivery
from sqlalchemy import select


def _waiting(side: Any) -> list[GithubDelivery]:
    with side.sessions() as session:
        query = select(GithubDelivery).where(GithubDelivery.handled_at.is_(None))
        query = query.where(GithubDelivery.payload["repository"]["full_name"].astext == side.name)
        return list(session.scalars(query))


def test_a_command_outlives_a_long_outage(side: Any) -> None:
    side.send("pull_request", side.pull_request(branch="triton"))
    side.send("issue_comment", side.comment("/driftline run"))
    side.github.outage = [502] * 1000
    for hours in range(12):
        side.ahead[0] = timedelta(hours=hours)
        side.work()
    assert 12 <= len(side.github.calls) < 30  # and it was not asked all the time
    side.github.outage = []
    side.ahead[0] = timedelta(hours=13)
    side.work()
    assert [run.created_by for run in side.runs()] == ["maintainer"]


def test_a_command_waits_as_long_as_a_limit_says(side: Any) -> None:
    side.send("pull_request", side.pull_request(branch="triton"))
    side.send("issue_comment", side.comment("/driftline run"))
    side.github.outage = [429]
    for seconds in (0, 30, 60, 85):
        side.ahead[0] = timedelta(seconds=seconds)
        side.work()
    assert len(side.github.calls) == 1
    side.ahead[0] = timedelta(seconds=130)
    side.work()
    assert len(side.runs()) == 1


def test_a_command_that_waits_is_obeyed_on_the_head_that_was_seen(side: Any) -> None:
    side.send("pull_request", side.pull_request(branch="triton"))
    side.send("issue_comment", side.comment("/driftline run"))
    side.github.outage = [502]
    side.work()
    side.send("pull_request", side.pull_request("synchronize"))
    side.work()
    assert (side.runs(), len(_waiting(side))) == ([], 2)
    side.ahead[0] = timedelta(seconds=30)
    side.work()
    first, second = side.runs()
    assert (first.head_sha, second.head_sha) == (side.commits["triton"], side.commits["refactor"])
    assert first.state is RunState.SUPERSEDED


def test_what_is_about_another_pull_request_does_not_wait(side: Any) -> None:
    first = side.pull_request()
    side.send("pull_request", first)
    side.work()
    side.github.outage = [502]
    side.send("issue_comment", side.comment("/driftline run"))
    side.work()
    side.send("pull_request", first | {"number": 8, "pull_request": first["pull_request"] | {"number": 8}})
    side.work()
    assert side.outcomes()[-1].startswith("run ")


def test_a_bug_is_tried_five_times(side: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(side.desk._measuring, "main", lambda *_: 1 / 0)
    side.send("push", side.common() | {"ref": "refs/heads/main", "before": "a" * 40, "after": "b" * 40})
    tries = []
    for _ in range(7):
        side.work()
        tries += [one.tries for one in _waiting(side)]
        side.ahead[0] += timedelta(minutes=5)
    assert tries[-1] == MOST_TRIES
    assert len(set(tries)) <= 5


@pytest.mark.parametrize("wait", [0, 1, 5, 90, 3600])
@pytest.mark.parametrize("age", [-3, 0, 7, 600, 90_000])
def test_a_delivery_is_put_off_at_least_as_long_as_asked(wait: int, age: int) -> None:
    now = datetime(2026, 12, 2, tzinfo=UTC)
    delivery = GithubDelivery(received_at=now - timedelta(seconds=age), tries=0)
    until = now + timedelta(seconds=wait)
    put_off(delivery, until)
    assert delivery.tries >= 1
    assert delivery.received_at + delivery.tries**2 * AGAIN >= until


@pytest.fixture
def moved_away(side: Any) -> Iterator[Callable[[], None]]:
    """The repository, where git finds nothing until it is called."""
    there, away = side.repository, side.repository.with_name("away")
    there.rename(away)
    yield lambda: away.rename(there) and None
    if away.exists():
        away.rename(there)


@pytest.mark.parametrize("event", ["pull_request", "push"])
def test_what_git_cannot_read_for_a_moment_is_measured_after(
    side: Any, moved_away: Callable[[], None], event: str
) -> None:
    push = {"ref": "refs/heads/main", "before": side.commits["main"], "after": side.commits["triton"]}
    side.send(event, side.pull_request() if event == "pull_request" else side.common() | push)
    side.work()
    assert (len(_waiting(side)), side.runs()) == (1, [])
    moved_away()
    side.ahead[0] = timedelta(seconds=30)
    side.work()
    (outcome,) = side.outcomes()
    assert outcome.startswith("run ")


def test_a_commit_that_git_does_not_have_yet_is_waited_for(side: Any) -> None:
    known, side.commits = side.commits, side.commits | {"refactor": "ab" * 20}
    side.send("pull_request", side.pull_request())
    side.commits = known
    side.work()
    assert [one.outcome for one in _waiting(side)] == ["refused: unknown_commit"]


def test_who_asks_for_what_git_cannot_read_is_told_in_minutes(side: Any, moved_away: Callable[[], None]) -> None:
    side.send("pull_request", side.pull_request(labels=[{"name": "driftline"}]))
    for seconds in range(0, 160, 10):
        side.ahead[0] = timedelta(seconds=seconds)
        side.work()
    assert _waiting(side) == []
    assert "Not measured" in side.shown
    assert str(side.repository) in side.shown
