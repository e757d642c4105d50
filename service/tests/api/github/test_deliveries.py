"""Deliveries that come together: each is kept once, in its order, and none spoils another's transaction."""

import asyncio
import json
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from driftline_service.database.engine import Sessions
from driftline_service.database.github_tables import GithubDelivery
from driftline_service.github import deliveries
from driftline_service.github.deliveries import Deliveries, Delivery, ReplayError
from sqlalchemy import select

from .conftest import signature

TERMINATE = "select pg_terminate_backend(pid) from pg_stat_activity where pid = %s"


def dsn_of(database_url: str) -> str:
    return database_url.replace("+psycopg", "")


def delivery(name: str, payload: str = "{}", event: str = "put", *, of: str | None = None) -> Delivery:
    """`of`: whose signature it has, so whose body; its own else."""
    return Delivery(id=name, event=event, signature=signature((of or name).encode()), payload=payload)


def kept_together(database_url: str, given: list[Delivery]) -> list[Any]:
    """What each was answered, an error included, if all come at once."""

    async def keep_all() -> list[Any]:
        keeper = Deliveries(dsn_of(database_url))
        try:
            return await asyncio.gather(*(keeper.keep(one) for one in given), return_exceptions=True)
        finally:
            await keeper.close()

    return asyncio.run(keep_all())


def stored(sessions: Sessions, names: list[str]) -> list[GithubDelivery]:
    with sessions() as session:
        query = select(GithubDelivery).where(GithubDelivery.id.in_(names)).order_by(GithubDelivery.received_at)
        return list(session.scalars(query))


def test_those_that_come_together_are_kept_in_their_order(database_url: str, sessions: Sessions) -> None:
    names = [str(uuid4()) for _ in range(40)]
    assert kept_together(database_url, [delivery(name) for name in names]) == [True] * 40
    rows = stored(sessions, names)
    assert [row.id for row in rows] == names
    assert len({row.received_at for row in rows}) == 40
    assert len({row.received_at.replace(microsecond=0) for row in rows}) <= 2


def test_the_same_one_together_with_itself_is_new_once(database_url: str, sessions: Sessions) -> None:
    first, other = str(uuid4()), str(uuid4())
    given = [delivery(first, '{"a": 1}'), delivery(other), delivery(first, '{"a": 2}'), delivery(first, '{"a": 3}')]
    assert kept_together(database_url, given) == [True, True, False, False]
    assert [row.payload for row in stored(sessions, [first])] == [{"a": 1}]
    assert kept_together(database_url, given) == [False] * 4


def test_one_body_under_two_ids_is_kept_once(database_url: str, sessions: Sessions) -> None:
    first, replay, later, other = (str(uuid4()) for _ in range(4))
    given = [delivery(first, '{"a": 1}'), delivery(replay, '{"a": 1}', of=first), delivery(other)]
    kept, refused, beside = kept_together(database_url, given)
    assert (kept, beside) == (True, True)
    assert isinstance(refused, ReplayError)
    [again, refused] = kept_together(database_url, [given[0], delivery(later, '{"a": 1}', event="push", of=first)])
    assert again is False
    assert isinstance(refused, ReplayError)
    assert [row.id for row in stored(sessions, [first, replay, later, other])] == [first, other]


@pytest.mark.parametrize("payload", ['{"a": ', '{"a": 1e999999}', '{"a": NaN}', '{"a": "\\u0000"}', '{"a": 1} x'])
def test_what_cannot_be_held_refuses_itself_alone(database_url: str, sessions: Sessions, payload: str) -> None:
    names = [str(uuid4()) for _ in range(3)]
    given = [delivery(names[0]), delivery(names[1], payload), delivery(names[2])]
    answers = kept_together(database_url, [delivery(str(uuid4())), *given])[1:]
    assert (answers[0], answers[2]) == (True, True)
    assert isinstance(answers[1], psycopg.DataError)
    assert [row.id for row in stored(sessions, names)] == [names[0], names[2]]


def test_a_batch_of_the_largest_is_cut(database_url: str, sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deliveries, "MOST_BYTES", 100)
    names = [str(uuid4()) for _ in range(5)]
    answers = kept_together(database_url, [delivery(name, json.dumps({"a": "x" * 70})) for name in names])
    assert answers == [True] * 5
    times = [row.received_at for row in stored(sessions, names)]
    assert len({(time - times[0]).total_seconds() > 0.00001 for time in times}) == 2  # one transaction was not enough


def test_a_connection_that_died_is_replaced_and_nothing_is_lost(database_url: str, sessions: Sessions) -> None:
    before, after = str(uuid4()), str(uuid4())

    async def keep_around_a_restart() -> list[bool]:
        keeper = Deliveries(dsn_of(database_url))
        found = [await keeper.keep(delivery(before))]
        assert keeper._connection is not None
        with psycopg.connect(dsn_of(database_url), autocommit=True) as admin:
            admin.execute(TERMINATE, [keeper._connection.info.backend_pid])
        found.append(await keeper.keep(delivery(after)))
        await keeper.close()
        return found

    assert asyncio.run(keep_around_a_restart()) == [True, True]
    assert [row.id for row in stored(sessions, [before, after])] == [before, after]


def test_whoever_gave_up_takes_nobody_along(database_url: str, sessions: Sessions) -> None:
    names = [str(uuid4()) for _ in range(2)]

    async def keep_and_go() -> bool:
        keeper = Deliveries(dsn_of(database_url))
        gone, stays = (asyncio.create_task(keeper.keep(delivery(name))) for name in names)
        await asyncio.sleep(0)
        gone.cancel()
        kept = await stays
        await keeper.close()
        return kept

    assert asyncio.run(keep_and_go())
    assert len(stored(sessions, names)) == 2


def test_a_database_that_is_away_refuses_all(database_url: str) -> None:
    answers = kept_together(f"{database_url}_gone", [delivery(str(uuid4())) for _ in range(3)])
    assert all(isinstance(answer, psycopg.OperationalError) for answer in answers)


@pytest.mark.parametrize("payload", ['{"a": NaN}', '{"a": 1e999999}', '{"a": ' + "[" * 100_000, '{"a": "\\ud800}'])
def test_only_json_is_accepted(side: Any, payload: str) -> None:
    answer = signed(side.client, payload)
    assert (answer.status_code, answer.json()["reason"]) == (400, "malformed")


def signed(client: httpx.Client, payload: str, **more: str) -> httpx.Response:
    headers = {
        "X-GitHub-Event": "ping",
        "X-GitHub-Delivery": str(uuid4()),
        "X-Hub-Signature-256": signature(payload.encode()),
    } | more
    return client.post("/github/webhook", content=payload.encode(), headers=headers)


@pytest.mark.parametrize("header", ["X-GitHub-Event", "X-GitHub-Delivery"])
@pytest.mark.parametrize("value", ["", "x" * 101])
def test_a_delivery_names_itself_shortly(side: Any, header: str, value: str) -> None:
    answer = signed(side.client, "{}", **{header: value})
    assert (answer.status_code, answer.json()["reason"]) == (400, "malformed")


def test_what_postgresql_cannot_hold_is_escaped_and_the_rest_is_as_it_came(side: Any, sessions: Sessions) -> None:
    payload = '{"nul": "a\\u0000b", "half": "\\ud800", "pair": "\\ud83d\\ude00", "mark": "\u241b", "umlaut": "\\u00e4"}'
    answer = signed(side.client, payload)
    assert answer.status_code == 202
    (row,) = stored(sessions, [answer.json()["delivery"]])
    assert row.payload == {
        "nul": "a\u241b\u2400b", "half": "\u241b\ue000", "pair": "\U0001f600", "mark": "\u241b\u241b", "umlaut": "ä",
    }  # fmt: skip
