"""Tokens, scopes, the audit log and a private service, over HTTP with every middleware."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from driftline_service.auth.scopes import Scope
from driftline_service.database.engine import Sessions
from driftline_service.database.tables import ApiToken, AuditEntry, Run
from driftline_service.dispatch.tokens import hash_of
from sqlalchemy import delete, select, update
from sqlalchemy.exc import DBAPIError

ADMIN = "sesame"
UNKNOWN = "00000000-0000-0000-0000-000000000000"

Make = Callable[..., dict[str, Any]]


@pytest.fixture
def make(client: httpx.Client) -> Make:
    """Make a token of a name of its own."""

    def made(**fields: Any) -> dict[str, Any]:
        answer = client.post("/api/v1/tokens", json={"name": f"t{uuid4().hex[:8]}"} | fields)
        assert answer.status_code == 201, answer.text
        found: dict[str, Any] = answer.json()
        return found

    return made


def _as(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def _reason(answer: httpx.Response) -> tuple[int, str]:
    return answer.status_code, answer.json()["reason"]


@pytest.mark.parametrize("scope", Scope)
def test_a_scope_holds_the_ones_below_it(scope: Scope) -> None:
    assert [scope.allows(wanted) for wanted in Scope] == [list(Scope).index(scope) >= n for n in range(3)]


def test_a_token_is_stored_as_its_hash_alone(make: Make, sessions: Sessions) -> None:
    made = make(scope="submit", days=30)
    with sessions() as session:
        row = session.get_one(ApiToken, made["id"])
    assert row.token_hash == hash_of(made["token"])
    assert made["token"] not in str(vars(row))
    assert datetime.fromisoformat(made["expires_at"]) - datetime.fromisoformat(made["created_at"]) == timedelta(days=30)


def test_a_submitter_submits_and_cancels_under_its_name_and_makes_no_tokens(
    client: httpx.Client, make: Make, repository: Path, sessions: Sessions
) -> None:
    made = make(scope="submit")
    bearer = _as(made["token"])
    run = client.post("/api/v1/runs", json={"repo": str(repository), "head": "refactor"}, headers=bearer)
    assert run.status_code == 201
    run_id = run.json()["run_id"]
    assert client.post(f"/api/v1/runs/{run_id}/cancel", headers=bearer).status_code == 200
    with sessions() as session:
        assert session.get_one(Run, run_id).created_by == made["name"]
        noted = session.scalars(select(AuditEntry).where(AuditEntry.subject == run_id).order_by(AuditEntry.id)).all()
    assert [(entry.actor, entry.action) for entry in noted] == [
        (made["name"], "run_submitted"), (made["name"], "run_cancelled"),
    ]  # fmt: skip
    for answer in (
        client.post("/api/v1/tokens", json={"name": "more"}, headers=bearer),
        client.get("/api/v1/tokens", headers=bearer),
        client.get("/api/v1/audit", headers=bearer),
        client.delete(f"/api/v1/tokens/{made['id']}", headers=bearer),
    ):
        assert _reason(answer) == (403, "wrong_scope")
        assert "has the scope submit; this needs admin" in answer.json()["detail"]


def test_a_reader_writes_nothing(client: httpx.Client, make: Make, repository: Path) -> None:
    bearer = _as(make(scope="read")["token"])
    answer = client.post("/api/v1/runs", json={"repo": str(repository), "head": "refactor"}, headers=bearer)
    assert _reason(answer) == (403, "wrong_scope")
    assert _reason(client.post(f"/api/v1/runs/{UNKNOWN}/cancel", headers=bearer)) == (403, "wrong_scope")


def test_a_revoked_and_an_expired_token_are_as_good_as_none(
    client: httpx.Client, make: Make, sessions: Sessions
) -> None:
    revoked, expired = make(scope="admin"), make(scope="admin")
    assert client.get("/api/v1/tokens", headers=_as(revoked["token"])).status_code == 200
    answer = client.delete(f"/api/v1/tokens/{revoked['id']}")
    assert (answer.status_code, answer.json()["valid"]) == (200, False)
    with sessions.begin() as session:
        past = datetime.now(UTC) - timedelta(seconds=1)
        session.execute(update(ApiToken).where(ApiToken.id == expired["id"]).values(expires_at=past))
    for token in (revoked["token"], expired["token"], "nonsense"):
        assert _reason(client.get("/api/v1/tokens", headers=_as(token))) == (403, "forbidden")
    assert _reason(client.delete(f"/api/v1/tokens/{revoked['id']}")) == (404, "unknown_token")


def test_the_last_use_is_noted(client: httpx.Client, make: Make, sessions: Sessions) -> None:
    made = make(scope="admin")
    assert made["last_used_at"] is None
    before = datetime.now(UTC)
    client.get("/api/v1/tokens", headers=_as(made["token"]))
    with sessions() as session:
        used = session.get_one(ApiToken, made["id"]).last_used_at
    assert used is not None
    assert used >= before


def test_names_are_taken_once_until_they_are_revoked(client: httpx.Client, make: Make) -> None:
    made = make()
    again = {"name": made["name"]}
    assert _reason(client.post("/api/v1/tokens", json=again)) == (409, "name_taken")
    assert _reason(client.post("/api/v1/tokens", json={"name": "admin"})) == (409, "name_taken")
    client.delete(f"/api/v1/tokens/{made['id']}")
    assert client.post("/api/v1/tokens", json=again).status_code == 201


@pytest.mark.parametrize("body", [{}, {"name": ""}, {"name": "x", "scope": "root"}, {"name": "x", "days": 0}])
def test_a_token_that_cannot_be_is_refused_by_name(client: httpx.Client, body: dict[str, Any]) -> None:
    assert _reason(client.post("/api/v1/tokens", json=body)) == (422, "malformed")


def test_the_audit_log_is_paged_and_cannot_be_rewritten(client: httpx.Client, make: Make, sessions: Sessions) -> None:
    names = [make()["name"] for _ in range(3)]
    page = client.get("/api/v1/audit", params={"limit": 2}).json()
    assert [entry["details"]["name"] for entry in page["entries"]] == names[:0:-1]
    assert client.get(page["next"]).json()["entries"][0]["details"]["name"] == names[0]
    with pytest.raises(DBAPIError, match="append-only"), sessions.begin() as session:
        session.execute(delete(AuditEntry))


def test_a_private_service_shows_nothing_without_a_token(private_client: httpx.Client, make: Make) -> None:
    paths = ("/api/v1/runs", f"/api/v1/runs/{UNKNOWN}", "/api/v1/lanes", "/api/v1/workers", "/api/v1/imports")
    for path in paths:
        assert _reason(private_client.get(path)) == (401, "unauthorized"), path
    bearer = _as(make(scope="read")["token"])
    assert private_client.get("/api/v1/runs", headers=bearer).status_code == 200
    assert private_client.get("/healthz").status_code == 200
    assert _reason(private_client.get("/api/v1/runs", headers=_as("wrong"))) == (403, "forbidden")


def test_a_reader_logs_in_and_comes_back_to_the_page(private_client: httpx.Client, make: Make) -> None:
    asked = private_client.get("/?state=done")
    assert (asked.status_code, asked.headers["location"]) == (303, "/login?next=/%3Fstate%3Ddone")
    form = private_client.get(asked.headers["location"])
    assert 'value="/?state=done"' in form.text
    assert "form-action 'self'" in form.headers["content-security-policy"]
    assert private_client.get("/static/style.css").status_code == 200
    wrong = private_client.post("/login", data={"token": "wrong", "next": "/"})
    assert wrong.status_code == 403
    assert "unknown, expired or revoked" in wrong.text
    token = make(scope="read")["token"]
    answer = private_client.post("/login", data={"token": token, "next": "/?state=done"})
    assert (answer.status_code, answer.headers["location"]) == (303, "/?state=done")
    cookie = answer.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict"} <= set(cookie.split("; "))
    assert private_client.get("/").status_code == 200  # the client kept the cookie
    private_client.cookies.clear()
    assert private_client.get("/").status_code == 303


def test_a_cookie_never_writes(private_client: httpx.Client, repository: Path) -> None:
    body = {"repo": str(repository), "head": "refactor"}
    private_client.cookies.set("driftline_token", ADMIN)
    answer = private_client.post("/api/v1/runs", json=body)
    assert _reason(answer) == (401, "unauthorized")
    private_client.cookies.clear()


@pytest.mark.parametrize(
    "target", ["//evil.example", "https://evil.example/", "/\\evil.example", "javascript:x", "/\n"]
)
def test_logging_in_never_leads_elsewhere(private_client: httpx.Client, target: str) -> None:
    answer = private_client.post("/login", data={"token": ADMIN, "next": target})
    assert (answer.status_code, answer.headers["location"]) == (303, "/")
    private_client.cookies.clear()


def test_every_answer_says_how_a_browser_is_to_take_it(client: httpx.Client, make: Make) -> None:
    bearer = {"Authorization": f"Bearer {make(scope='read')['token']}"}
    answers = [
        client.get("/api/v1/lanes"), client.get("/api/v1/nowhere"), client.post("/api/v1/tokens", json={}, headers=bearer),
        client.get("/healthz"), client.get("/", headers={"Host": "evil.example"}), client.get("/"),
        client.get("/static/style.css"),
    ]  # fmt: skip
    assert {answer.headers.get("x-content-type-options") for answer in answers} == {"nosniff"}
    assert {answer.headers.get("referrer-policy") for answer in answers} == {"same-origin"}
    assert {answer.headers.get("cache-control") for answer in answers[:3]} == {"no-store"}
    assert "max-age" in answers[-1].headers["cache-control"]


def test_no_other_site_may_read_through_a_browser(client: httpx.Client) -> None:
    foreign = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    for answer in (client.options("/api/v1/runs", headers=foreign), client.get("/api/v1/runs", headers=foreign)):
        assert not [name for name in answer.headers if name.startswith("access-control-")]
    written = client.post("/login", data={"token": ADMIN}, headers=foreign)
    assert _reason(written) == (403, "foreign_origin")
    assert "set-cookie" not in written.headers
