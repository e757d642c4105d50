"""POST /api/v1/runs: what a run becomes, and how each mistake is told."""

from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import pytest
from driftline_service.database.engine import Sessions
from driftline_service.database.tables import Run, RunLane
from driftline_service.settings import Settings
from git_repository import git
from sqlalchemy import select


def _submit(client: httpx.Client, repository: Path, **more: Any) -> httpx.Response:
    return client.post("/api/v1/runs", json={"repo": str(repository), "head": "refactor"} | more)


def test_a_run_is_created_with_pinned_commits(
    client: httpx.Client, repository: Path, commits: dict[str, str], sessions: Sessions
) -> None:
    answer = _submit(client, repository)
    assert answer.status_code == 201, answer.text
    run = answer.json()
    assert answer.headers["location"] == f"/api/v1/runs/{run['run_id']}"
    assert run["url"] == f"http://drift.example.org/runs/{run['run_id']}"
    assert (run["head"], run["base"]) == (commits["refactor"], commits["main"])
    assert (run["state"], run["verdict"], run["name"]) == ("queued", None, "Change refactor")
    with sessions() as session:
        lanes = session.scalars(
            select(RunLane.name).where(RunLane.run_id == UUID(run["run_id"])).order_by(RunLane.position)
        )
        assert list(lanes) == ["canary V0", "canary V1"]


def test_head_on_main_is_compared_with_its_parent(
    client: httpx.Client, repository: Path, commits: dict[str, str]
) -> None:
    answer = _submit(client, repository, head="main")
    assert answer.json()["base"] == commits["main^"]


def test_a_commit_that_no_branch_leads_to_is_found_by_its_sha(client: httpx.Client, repository: Path) -> None:
    made = git(repository, "commit-tree", "refactor^{tree}", "-p", "main", "-m", "Lost")
    run = _submit(client, repository, head=made).json()
    assert (run["head"], run["name"]) == (made, "Lost")


def test_measuring_noise_compares_a_commit_with_itself(
    client: httpx.Client, repository: Path, commits: dict[str, str]
) -> None:
    run = _submit(client, repository, head="main", measure_noise=True).json()
    assert run["base"] == run["head"] == commits["main"]
    answer = _submit(client, repository, head="main", base="main")
    assert (answer.status_code, answer.json()["reason"]) == (422, "same_commit")


def test_a_lane_that_cannot_see_the_change_is_marked(
    client: httpx.Client, repository: Path, sessions: Sessions
) -> None:
    run = _submit(client, repository, head="triton").json()
    with sessions() as session:
        reasons = session.scalars(select(RunLane.unreachable).where(RunLane.run_id == UUID(run["run_id"]))).all()
    assert set(reasons) == {"torch loads nothing of triton_backend"}


def test_the_same_key_gives_the_same_run(client: httpx.Client, repository: Path, sessions: Sessions) -> None:
    headers = {"Idempotency-Key": uuid4().hex}
    body = {"repo": str(repository), "head": "refactor"}
    first, second = (client.post("/api/v1/runs", json=body, headers=headers) for _ in range(2))
    assert (first.status_code, second.status_code) == (201, 200)
    assert first.json() == second.json()
    third = client.post("/api/v1/runs", json=body | {"head": "main"}, headers=headers)
    assert (third.status_code, third.json()["reason"]) == (409, "idempotency_key_reused")
    with sessions() as session:
        assert len(session.scalars(select(Run).where(Run.idempotency_key == headers["Idempotency-Key"])).all()) == 1


@pytest.mark.parametrize(
    ("more", "status", "reason", "words"),
    [
        ({"head": "deadbeef"}, 422, "unknown_commit", "deadbeef"),
        ({"repo": "/nowhere/at/all"}, 422, "unreachable_repository", "/nowhere/at/all"),
        ({"repo": "http://127.0.0.1:9/kernels.git"}, 422, "unreachable_repository", "127.0.0.1:9"),
        ({"lanes": ["canary V7"]}, 422, "unknown_lane", "'canary V0', 'canary V1'"),
        ({"lanes": ["canary V0", "canary V0"]}, 422, "duplicate_lane", "canary V0"),
        ({"questions": 2000}, 422, "too_many_questions", "1 to 1319"),
        ({"head": "main~2", "base": "main"}, 422, "no_kernels", "mamba2_varlen"),
        ({"head": "--all"}, 422, "malformed", "head"),
        ({"colour": "red"}, 422, "malformed", "colour"),
        ({"margin": 0}, 422, "malformed", "margin"),
        ({"name": "a\0b"}, 422, "malformed", "body.name"),
    ],
)
def test_a_mistake_has_a_reason(
    client: httpx.Client, repository: Path, more: dict[str, Any], status: int, reason: str, words: str
) -> None:
    answer = _submit(client, repository, **more)
    problem = answer.json()
    assert (answer.status_code, problem["reason"]) == (status, reason), answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert words in problem["detail"]
    assert problem["instance"] == "/api/v1/runs"


def test_a_folder_that_is_no_repository(client: httpx.Client, repository: Path, tmp_path: Path) -> None:
    problem = _submit(client, repository, repo=str(tmp_path)).json()
    assert problem["reason"] in ("not_a_repository", "unreachable_repository")
    assert str(tmp_path) in problem["detail"]


def test_submitting_needs_the_token(client: httpx.Client, repository: Path) -> None:
    body = {"repo": str(repository), "head": "refactor"}
    without = httpx.post(f"{client.base_url}/api/v1/runs", json=body)
    assert (without.status_code, without.json()["reason"]) == (401, "unauthorized")
    assert without.headers["www-authenticate"] == "Bearer"
    wrong = client.post("/api/v1/runs", json=body, headers={"Authorization": "Bearer sesame2"})
    assert (wrong.status_code, wrong.json()["reason"]) == (403, "forbidden")


def test_a_page_elsewhere_cannot_submit(client: httpx.Client, repository: Path) -> None:
    body = {"repo": str(repository), "head": "refactor"}
    foreign = client.post("/api/v1/runs", json=body, headers={"Origin": "https://evil.example"})
    assert (foreign.status_code, foreign.json()["reason"]) == (403, "foreign_origin")
    rebound = client.get("/api/v1/runs", headers={"Host": "evil.example"})
    assert (rebound.status_code, rebound.json()["reason"]) == (421, "unknown_host")


def test_local_folders_are_for_services_that_allow_them(settings: Settings) -> None:
    from driftline_service.intake.plan import plan
    from driftline_service.intake.refusal import Refusal
    from driftline_service.intake.request import SubmitRequest
    from driftline_service.lanes import read_lanes

    remote = settings.model_copy(update={"allow_local_repositories": False})
    with pytest.raises(Refusal, match="reads no local folders") as refusal:
        plan(SubmitRequest(repo="/etc", head="main"), lanes=read_lanes(settings.config_path), settings=remote)
    assert (refusal.value.reason, refusal.value.status) == ("local_repository", 403)
