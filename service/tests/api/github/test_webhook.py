"""Webhooks at the door: signed, once, in bounds, answered before anything is done."""

import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from .conftest import signature


def _reason(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["reason"]


def test_a_signed_delivery_is_kept_once(side: Any) -> None:
    first = side.send("ping", side.common(), delivery="d-1")
    assert (first.status_code, first.json()) == (202, {"delivery": "d-1", "kept": True})
    assert side.send("ping", side.common(), delivery="d-1").json()["kept"] is False
    assert side.outcomes() == [None]  # answered before it is handled
    side.work()
    assert side.outcomes() == ["nothing to do"]


def test_a_forged_body_changes_nothing(side: Any) -> None:
    assert _reason(side.send("pull_request", side.pull_request(), secret="guessed")) == (401, "wrong_signature")
    assert side.outcomes() == []


def test_a_body_cut_short_under_the_signature_of_the_whole_changes_nothing(side: Any) -> None:
    body = json.dumps(side.pull_request()).encode()
    headers = {"X-GitHub-Event": "pull_request", "X-GitHub-Delivery": "cut", "X-Hub-Signature-256": signature(body)}
    assert _reason(side.client.post("/github/webhook", content=body[:-1], headers=headers)) == (401, "wrong_signature")
    assert side.outcomes() == []


def test_another_body_under_an_id_that_was_here_changes_nothing(side: Any) -> None:
    side.send("ping", side.common(), delivery="d-2")
    assert side.send("pull_request", side.pull_request(), delivery="d-2").json()["kept"] is False
    side.work()
    assert (side.outcomes(), side.runs()) == (["nothing to do"], [])


def test_a_body_that_was_here_is_refused_under_another_id_and_under_another_event(side: Any, caplog: Any) -> None:
    opened = side.pull_request()
    assert side.send("pull_request", opened, delivery="d-3").json()["kept"] is True
    assert _reason(side.send("pull_request", opened, delivery="d-4")) == (409, "replayed")
    assert _reason(side.send("push", opened, delivery="d-5")) == (409, "replayed")
    assert caplog.text.count("webhook_replayed") == 2
    assert side.send("pull_request", opened, delivery="d-3").json()["kept"] is False  # GitHub's own "Redeliver"
    side.work()
    assert (len(side.outcomes()), len(side.runs())) == (1, 1)


@pytest.mark.parametrize("signature", [None, "", "sha1=abc", "sha256=", "sha256=" + "0" * 64, "sha256=é"])
def test_a_signature_that_is_none_is_refused(side: Any, signature: str | None) -> None:
    headers = [(b"X-GitHub-Event", b"ping"), (b"X-GitHub-Delivery", b"x")]
    if signature is not None:
        headers.append((b"X-Hub-Signature-256", signature.encode()))
    answer = side.client.post("/github/webhook", content=b"{}", headers=headers)
    assert _reason(answer) == (401, "wrong_signature")


@pytest.mark.parametrize("payload", ["[]", "nonsense", '{"a": ', "[" * 100_000])
def test_a_signed_body_that_is_no_object_is_refused(side: Any, payload: str) -> None:
    headers = {"X-GitHub-Event": "ping", "X-GitHub-Delivery": "x", "X-Hub-Signature-256": signature(payload.encode())}
    answer = side.client.post("/github/webhook", content=payload.encode(), headers=headers)
    assert _reason(answer) == (400, "malformed")


def test_more_than_ten_megabytes_are_refused(side: Any) -> None:
    answer = side.client.post(
        "/github/webhook", content=b"x" * (10 * (1 << 20) + 1), headers={"X-GitHub-Event": "ping"}
    )
    assert _reason(answer) == (413, "body_too_large")


@pytest.mark.parametrize("megabytes", [11, 100])
def test_a_body_of_no_stated_length_is_read_no_further_than_ten_megabytes(side: Any, megabytes: int) -> None:
    read = 0

    def body() -> Iterator[bytes]:
        nonlocal read
        for _ in range(megabytes):
            yield bytes(1 << 20)
            read += 1

    try:
        assert _reason(side.client.post("/github/webhook", content=body())) == (413, "body_too_large")
    except (httpx.WriteError, httpx.ReadError, httpx.RemoteProtocolError):  # cut off in the midst of it
        assert read < megabytes
    assert side.outcomes() == []


def test_text_that_postgresql_cannot_hold_is_kept(side: Any) -> None:
    payload = side.common() | {"zen": "NUL \0 and \ud800"}
    assert side.send("ping", json.loads(json.dumps(payload))).status_code == 202


def test_a_service_without_an_app_says_so(client: httpx.Client) -> None:
    assert _reason(client.post("/github/webhook", content=b"{}")) == (404, "no_github")


@pytest.mark.parametrize(
    ("event", "payload"),
    [("pull_request", {}), ("pull_request", {"installation": 1}), ("push", {"ref": 3}), ("unheard_of", {"a": 1})],
)
def test_a_payload_of_another_shape_is_put_aside(side: Any, event: str, payload: dict[str, Any]) -> None:
    side.send(event, side.common() | payload)
    side.work()
    assert side.outcomes()[0].startswith(("not understood", "nothing to do"))
