"""Clients that hang up in the middle of a body, over a raw socket: one line in the log, and nothing changed."""

import logging
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any
from uuid import UUID

import httpx
import pytest
from driftline_service.database.engine import Sessions
from driftline_service.database.tables import Base
from driftline_service.settings import Settings
from pydantic import SecretStr
from sqlalchemy import func, select

NOBODY = UUID(int=0)
WORKER = "/worker/v1"
DOORS = {
    "an import": "/api/v1/imports?lane=canary%20V0&commit=" + "a" * 40 + "&reported_by=ci",
    "a submission": "/api/v1/runs",
    "a webhook": "/github/webhook",
    "a claim": f"{WORKER}/jobs/{NOBODY}/claim",
    "lines": f"{WORKER}/attempts/{NOBODY}/lines",
    "an end": f"{WORKER}/attempts/{NOBODY}/finish",
    "a log-in": "/login",
}
LENGTH = "Content-Length: 100000\r\n\r\n"
CHUNKED = "Transfer-Encoding: chunked\r\n\r\n"
PAUSES = (0.2, 1.0, 5.0)
"""Between the last byte and the end. A busy server may see the end before the beginning, and has read nothing then."""


@pytest.fixture(scope="module")
def door(
    settings: Settings, serve: Callable[[Settings], AbstractContextManager[httpx.Client]]
) -> Iterator[httpx.Client]:
    """The whole application, with a GitHub App's webhook too."""
    with serve(settings.model_copy(update={"github_webhook_secret": SecretStr("secret")})) as opened:
        yield opened


def _rows(sessions: Sessions) -> dict[str, int]:
    with sessions() as session:
        return {
            table.name: session.scalar(select(func.count()).select_from(table)) or 0
            for table in Base.metadata.sorted_tables
        }


def _events(caplog: pytest.LogCaptureFixture) -> list[Mapping[str, Any]]:
    return [record.msg for record in caplog.records if isinstance(record.msg, Mapping)]


def _hang_up(client: httpx.Client, path: str, framing: str, sent: bytes, pause: float) -> None:
    """Send the head of a request and some of its body, then close."""
    url = client.base_url
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {client.headers['Authorization']}\r\n"
        f"Content-Type: application/json\r\n{framing}"
    )
    with socket.create_connection((url.host, url.port), timeout=10) as connection:
        connection.sendall(head.encode() + sent)
        time.sleep(pause)


def _told(caplog: pytest.LogCaptureFixture, times: int) -> Mapping[str, Any]:
    """The line of the last of so many clients; one line each."""
    deadline = time.monotonic() + 10
    while len(found := [one for one in _events(caplog) if one["event"] == "client_hung_up"]) < times:
        assert time.monotonic() < deadline, caplog.text
        time.sleep(0.02)
    assert len(found) == times
    return found[-1]


@pytest.mark.parametrize("framing", [LENGTH, CHUNKED], ids=["declared", "chunked"])
@pytest.mark.parametrize("path", DOORS.values(), ids=DOORS)
def test_it_is_one_quiet_line(
    door: httpx.Client,
    sessions: Sessions,
    settings: Settings,
    caplog: pytest.LogCaptureFixture,
    path: str,
    framing: str,
) -> None:
    caplog.set_level(logging.INFO)
    before = _rows(sessions)
    half = b'{"half": ' if framing == LENGTH else b'9\r\n{"half": \r\n'
    for times, pause in enumerate(PAUSES, 1):
        _hang_up(door, path, framing, half, pause)
        line = _told(caplog, times)
        if line["bytes"]:
            break
    assert (line["path"], line["method"], line["bytes"]) == (path.partition("?")[0], "POST", 9)
    told = [record for record in caplog.records if record.levelno > logging.INFO or record.exc_info]
    assert told == [], caplog.text
    assert "request_refused" not in str(_events(caplog))
    assert _rows(sessions) == before
    incoming = settings.data_dir / "incoming"
    assert not incoming.exists() or not list(incoming.iterdir())
    assert door.get("/healthz").status_code == 200


def test_who_leaves_without_a_body_is_not_told_of(door: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with socket.create_connection((door.base_url.host, door.base_url.port), timeout=10) as connection:
        connection.sendall(b"GET /api/v1/lanes HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert door.get("/healthz").status_code == 200
    time.sleep(0.3)
    assert "client_hung_up" not in str(_events(caplog))
