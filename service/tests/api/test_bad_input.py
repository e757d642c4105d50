"""Bad input over HTTP: refused with a reason code, logged with that code, and no row changed."""

import logging
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from driftline_service.database.engine import Sessions
from driftline_service.database.tables import ApiToken, Base
from driftline_service.settings import Settings
from sqlalchemy import select, update

NOTED = frozenset({"api_tokens"})
"""Its last use may be told of a token that is refused for its scope."""

HUNDRED = 100 << 20
NO_COMMIT = "deadbeef" * 5
_NOBODYS = UUID("00000000-0000-4000-8000-000000000000")
"""Of no job and no attempt; a random one would give the tests another name in each process."""

Expect = Callable[[httpx.Response, int, str], None]


def _rows(sessions: Sessions) -> dict[str, list[Any]]:
    with sessions() as session:
        tables = [table for table in Base.metadata.sorted_tables if table.name not in NOTED]
        return {table.name: sorted(map(str, session.execute(select(table)).all())) for table in tables}


@pytest.fixture
def refused(sessions: Sessions, caplog: pytest.LogCaptureFixture) -> Iterator[Expect]:
    """Says what an answer must be; afterwards nothing may have changed since the test began."""
    caplog.set_level(logging.INFO)
    before = _rows(sessions)

    def expect(answer: httpx.Response, status: int, reason: str) -> None:
        assert (answer.status_code, answer.json()["reason"]) == (status, reason), answer.text
        told = [record.msg for record in caplog.records if isinstance(record.msg, Mapping)]
        lines = [line for line in told if line["event"] == "request_refused"]
        assert [(line["status"], line["reason"]) for line in lines[-1:]] == [(status, reason)], caplog.text
        assert lines[-1]["path"] == answer.request.url.path[:200]
        assert not [record for record in caplog.records if record.exc_info or record.levelno >= logging.ERROR]

    yield expect
    assert _rows(sessions) == before


def _token(client: httpx.Client, scope: str) -> dict[str, Any]:
    answer = client.post("/api/v1/tokens", json={"name": f"t{uuid4().hex[:8]}", "scope": scope})
    found: dict[str, Any] = answer.json()
    return found


@pytest.fixture
def expired(client: httpx.Client, sessions: Sessions) -> dict[str, str]:
    made = _token(client, "admin")
    with sessions.begin() as session:
        past = datetime.now(UTC) - timedelta(seconds=1)
        session.execute(update(ApiToken).where(ApiToken.id == made["id"]).values(expires_at=past))
    return {"Authorization": f"Bearer {made['token']}"}


@pytest.fixture
def reader(client: httpx.Client) -> dict[str, str]:
    return {"Authorization": f"Bearer {_token(client, 'read')['token']}"}


@pytest.fixture(scope="module")
def writes(client: httpx.Client) -> list[tuple[str, str]]:
    """(method, path) of every door of the public API that changes something."""
    paths = client.get("/openapi.json").json()["paths"]
    found = [(method, path) for path, methods in paths.items() for method in methods if method != "get"]
    return [(method.upper(), path) for method, path in found if path.startswith("/api/")]


def _filled(path: str) -> str:
    return "/".join(str(uuid4()) if part.startswith("{") else part for part in path.split("/"))


def test_no_door_that_writes_opens_to_a_wrong_token(
    client: httpx.Client,
    writes: list[tuple[str, str]],
    expired: dict[str, str],
    reader: dict[str, str],
    refused: Expect,
) -> None:
    assert len(writes) >= 12
    for method, path in writes:
        where, question = _filled(path), {"lane": "canary V0", "commit": NO_COMMIT, "reported_by": "x"}
        for headers, status, reason in (
            (expired, 403, "forbidden"), (reader, 403, "wrong_scope"), ({"Authorization": "Bearer x"}, 403, "forbidden"),
            ({"Authorization": "Basic eDp5"}, 401, "unauthorized"), ({"Authorization": ""}, 401, "unauthorized"),
        ):  # fmt: skip
            refused(client.request(method, where, json={}, params=question, headers=headers), status, reason)


@pytest.mark.parametrize("door", ["runs", "bisects"])
@pytest.mark.parametrize(
    ("ref", "reasons"),
    [
        ("--upload-pack=x", {"malformed"}), ("-x", {"malformed"}), ("..", {"malformed"}), ("a..b", {"bad_ref"}),
        ("main..refactor", {"bad_ref"}), ("main@{1}", {"malformed"}), ("a\0b", {"malformed"}), ("a\nb", {"malformed"}),
        ("x/../../y", {"bad_ref"}), (NO_COMMIT, {"unknown_commit"}), ("no-such-branch", {"unknown_commit"}),
    ],
)  # fmt: skip
def test_a_ref_that_is_none(
    client: httpx.Client, repository: Path, refused: Expect, door: str, ref: str, reasons: set[str]
) -> None:
    (reason,) = reasons
    other = {"runs": "base", "bisects": "good"}[door]
    head = {"runs": "head", "bisects": "bad"}[door]
    lane = {"lane": "canary V0"} if door == "bisects" else {}
    for names in ({head: ref, other: "main^"}, {head: "main", other: ref}):
        body = {"repo": str(repository), **names, **lane}
        refused(client.post(f"/api/v1/{door}", json=body), 422, reason)


@pytest.mark.parametrize(
    "repo", ["--upload-pack=x", "ext::sh -c x", "/a\0b", "https://h/k\n", "ssh://-oProxyCommand=x/y"]
)
def test_a_repository_that_is_none(client: httpx.Client, refused: Expect, repo: str) -> None:
    answer = client.post("/api/v1/runs", json={"repo": repo, "head": "main"})
    refused(answer, 422, "bad_url" if repo.startswith("ssh") else "malformed")


def test_a_repository_that_vanished_after_it_was_measured(
    client: httpx.Client, repository: Path, tmp_path: Path, refused: Expect, settings: Settings
) -> None:
    """Its mirror is here still, and yet nobody is told that all is well."""
    from driftline.git import Mirror

    there = tmp_path / "kernels"
    shutil.copytree(repository, there)
    Mirror.open(settings.mirrors_dir, str(there)).fetch()
    shutil.rmtree(there)
    for door, names in (
        ("runs", {"head": "refactor"}),
        ("bisects", {"good": "main", "bad": "refactor", "lane": "canary V0"}),
    ):
        answer = client.post(f"/api/v1/{door}", json={"repo": str(there), **names})
        refused(answer, 422, "unreachable_repository")
        assert str(there) in answer.json()["detail"]


@pytest.mark.parametrize("declared", [True, False], ids=["declared", "undeclared"])
@pytest.mark.parametrize(
    "path", ["/api/v1/runs", "/login", f"/worker/v1/attempts/{_NOBODYS}/lines", f"/worker/v1/jobs/{_NOBODYS}/claim"]
)
def test_a_hundred_megabytes(
    client: httpx.Client, refused: Expect, caplog: pytest.LogCaptureFixture, path: str, declared: bool
) -> None:
    block = bytes(1 << 20)
    content = bytes(HUNDRED) if declared else (block for _ in range(HUNDRED >> 20))
    try:
        refused(client.post(path, content=content), 413, "body_too_large")
    except (httpx.WriteError, httpx.ReadError, httpx.RemoteProtocolError):  # cut off: it sent more than is read of one
        deadline = time.monotonic() + 10
        while "body_too_large" not in caplog.text:
            assert time.monotonic() < deadline
            time.sleep(0.05)


@pytest.mark.parametrize(("byte", "reason"), [(b"\0", "no_results"), (b"x", "bad_archive")])
def test_a_hundred_megabytes_that_are_no_evaluation(
    client: httpx.Client, refused: Expect, settings: Settings, byte: bytes, reason: str
) -> None:
    question = {"lane": "canary V0", "commit": NO_COMMIT, "reported_by": "x"}
    answer = client.post("/api/v1/imports", params=question, content=byte * HUNDRED)
    refused(answer, 422, reason)
    assert list((settings.data_dir / "incoming").iterdir()) == []


def test_tokens_of_the_one_world_open_nothing_in_the_other(client: httpx.Client, refused: Expect) -> None:
    """An admin's token is no worker's."""
    for path, body in (
        (f"/worker/v1/jobs/{_NOBODYS}/claim", {"worker": _WORKER}),
        (f"/worker/v1/attempts/{_NOBODYS}/lines", {"sequence": 0, "lines": []}),
        (f"/worker/v1/attempts/{_NOBODYS}/finish", {"outcome": "succeeded", "batches": 0}),
        (f"/worker/v1/attempts/{_NOBODYS}/heartbeat", None),
    ):
        refused(client.post(path, json=body), 401, "wrong_token")


_WORKER = {"name": "w", "host": "h", "environment_id": "e", "sandbox": "plain"}
