"""GitHub away while deliveries are handled: each waits its time, none is lost, and what is about one pull request keeps its
order."""

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
