"""What holds for every door that makes work or changes something: the quota of its repository, and a line in the audit log."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest
from driftline_service.database.engine import Sessions
from driftline_service.database.tables import Run
from driftline_service.settings import Settings
from sqlalchemy import func, select

Serve = Callable[[Settings], AbstractContextManager[httpx.Client]]


@pytest.fixture
def run_id(client: httpx.Client, repository: Path) -> str:
    body = {"repo": str(repository), "head": "refactor", "lanes": ["canary V1"], "questions": 20}
    return str(client.post("/api/v1/runs", json=body).json()["run_id"])


def _search(repository: Path) -> dict[str, Any]:
    return {"repo": str(repository), "good": "main^", "bad": "refactor", "lane": "canary V1", "questions": 20}


@pytest.mark.parametrize(
    ("limit", "reason"), [({"runs_a_day": 1}, "too_many_runs"), ({"unfinished_jobs": 1}, "too_many_jobs")]
)
def test_the_quota_stands_at_every_door_that_makes_a_run(
    settings: Settings,
    serve: Serve,
    repository: Path,
    sessions: Sessions,
    run_id: str,
    limit: dict[str, int],
    reason: str,
) -> None:
    def runs() -> int:
        with sessions() as session:
            return session.scalar(select(func.count()).select_from(Run)) or 0

    before = runs()
    with serve(settings.model_copy(update=limit)) as client:
        for path, body in (
            ("/api/v1/runs", {"repo": str(repository), "head": "refactor"}),
            (f"/api/v1/runs/{run_id}/repeats", {"times": 20}),
            ("/api/v1/bisects", _search(repository)),
        ):
            answer = client.post(path, json=body)
            assert (answer.status_code, answer.json()["reason"]) == (429, reason), path
            assert int(answer.headers["retry-after"]) > 0
    assert runs() == before


def test_the_log_tells_of_every_change_and_who_made_it(client: httpx.Client, repository: Path, run_id: str) -> None:
    name = f"t{uuid4().hex[:8]}"
    token = client.post("/api/v1/tokens", json={"name": name, "scope": "admin"}).json()
    bearer = {"Authorization": f"Bearer {token['token']}"}

    def write(path: str, body: dict[str, Any] | None = None) -> dict[str, Any]:
        answer = client.post(path, json=body or {}, headers=bearer)
        assert answer.is_success, answer.text
        found: dict[str, Any] = answer.json()
        return found

    again = write(f"/api/v1/runs/{run_id}/repeats")
    write(f"/api/v1/runs/{again['run_id']}/cancel")
    search = write("/api/v1/bisects", _search(repository))
    write(f"/api/v1/bisects/{search['bisect_id']}/cancel")
    point = {
        "lane": "granite-4.0-tiny V1", "commit": uuid4().hex, "questions": 1319,
        "scores": [{"filter": "strict-match", "value": 0.58}],
    }  # fmt: skip
    figures = {"reported_by": "Ada", "figures": {"format": "driftline-figures-1", "points": [point]}}
    (reported,) = write("/api/v1/imports/figures", figures)["imports"]
    write(f"/api/v1/imports/{reported['import_id']}/withdraw", {"decided_by": "Ada", "reason": "wrong"})
    other = write("/api/v1/tokens", {"name": f"{name}-other"})
    client.delete(f"/api/v1/tokens/{other['id']}", headers=bearer)
    entries = client.get("/api/v1/audit", params={"limit": 50}).json()["entries"]
    actions = [entry["action"] for entry in reversed(entries) if entry["actor"] == name]
    assert actions == [
        "run_repeated", "run_cancelled", "bisect_begun", "bisect_cancelled", "import_reported", "import_withdrawn",
        "token_created", "token_revoked",
    ]  # fmt: skip
