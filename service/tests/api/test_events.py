"""GET …/events: stored events first, then live ones through LISTEN, resumption, and the end."""

import asyncio
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast
from uuid import UUID

import httpx
import pytest
from driftline_service.api import run_events
from driftline_service.api.context import Context
from driftline_service.app import create_app
from driftline_service.database.engine import Sessions
from driftline_service.database.event_queries import record
from driftline_service.settings import Settings


@pytest.fixture
def run_id(client: httpx.Client, repository: Path) -> str:
    body = {"repo": str(repository), "head": "refactor"}
    return str(client.post("/api/v1/runs", json=body).json()["run_id"])


def _events(answer: httpx.Response) -> Iterator[tuple[str, int | None, dict[str, object]]]:
    name, identifier = "", None
    for line in answer.iter_lines():
        if line.startswith("id: "):
            identifier = int(line[4:])
        elif line.startswith("event: "):
            name = line[7:]
        elif line.startswith("data: "):
            yield name, identifier, json.loads(line[6:])
            identifier = None


def test_the_log_then_news_then_the_end(client: httpx.Client, run_id: str, sessions: Sessions) -> None:
    with client.stream("GET", f"/api/v1/runs/{run_id}/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        events = _events(answer)
        name, first, data = next(events)
        assert (name, data["kind"]) == ("entry", "run_submitted")
        assert first is not None
        assert next(events)[2]["state"] == "queued"
        with sessions.begin() as session:
            record(session, UUID(run_id), "note", "live")
        said = time.monotonic()
        assert next(events)[2]["message"] == "live"
        assert time.monotonic() - said < 5, "a notification, not a time-out, must wake the stream"
        client.post(f"/api/v1/runs/{run_id}/cancel", json={"reason": "enough"})
        rest = list(events)
    assert rest[0][2]["message"] == "enough"
    assert rest[-1][0] == "progress"
    assert rest[-1][2]["state"] == "cancelled"


def test_a_client_resumes_where_it_was(client: httpx.Client, run_id: str, sessions: Sessions) -> None:
    with sessions.begin() as session:
        record(session, UUID(run_id), "note", "missed")
    client.post(f"/api/v1/runs/{run_id}/cancel", json={"reason": "enough"})
    with client.stream("GET", f"/api/v1/runs/{run_id}/events") as answer:
        all_events = list(_events(answer))
    first = all_events[0][1]
    with client.stream("GET", f"/api/v1/runs/{run_id}/events", headers={"Last-Event-ID": str(first)}) as answer:
        assert list(_events(answer)) == all_events[1:]


def test_news_between_the_first_reading_and_the_wait_are_told_at_once(
    client: httpx.Client, run_id: str, settings: Settings, sessions: Sessions
) -> None:
    # An application that was not started listens to nothing: its wake-ups are told no news.
    context = replace(cast(Context, create_app(settings).state.context), sessions=sessions)
    reader = run_events._Reader(UUID(run_id), after=0)
    first = reader.news(context)
    client.post(f"/api/v1/runs/{run_id}/cancel", json={"reason": "enough"})

    async def rest() -> list[str]:
        async with asyncio.timeout(run_events.KEEP_ALIVE_SECONDS / 2):
            return [message async for message in run_events._stream(reader, context, first)]

    assert any("enough" in message for message in asyncio.run(rest()))


def test_many_watchers_share_one_connection(client: httpx.Client, run_id: str, sessions: Sessions) -> None:
    seen: list[list[object]] = []

    def watch() -> None:
        with client.stream("GET", f"/api/v1/runs/{run_id}/events") as answer:
            seen.append([data.get("message") for name, _, data in _events(answer) if name == "entry"])

    threads = [threading.Thread(target=watch) for _ in range(8)]
    for thread in threads:
        thread.start()
    time.sleep(0.5)
    client.post(f"/api/v1/runs/{run_id}/cancel", json={"reason": "enough"})
    for thread in threads:
        thread.join(10)
    assert [messages[-1] for messages in seen] == ["enough"] * 8
