"""Searches over HTTP: what lies between two commits of a real repository, the page, cancelling, and refusals."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from git_repository import commit, git

INSIDE = Path("kernels") / "src" / "mamba2_varlen" / "torch_backend" / "__init__.py"


@pytest.fixture(scope="session")
def line(repository: Path) -> dict[str, str]:
    """Branch `line`: kernels, docs, kernels, a merged branch of two commits, kernels."""
    git(repository, "checkout", "-q", "-b", "line", "main")
    shas = {"good": git(repository, "rev-parse", "HEAD")}

    def change(name: str, path: Path) -> None:
        with (repository / path).open("a") as file:
            file.write(f"\n# {name}\n")
        shas[name] = commit(repository, name)

    change("first", INSIDE)
    change("docs", Path("README"))
    change("second", INSIDE)
    git(repository, "checkout", "-q", "-b", "side", "line")
    change("side one", Path("README"))
    change("side two", Path("README"))
    git(repository, "checkout", "-q", "line")
    git(repository, "merge", "-q", "--no-ff", "-m", "merge side", "side")
    shas["merge"] = git(repository, "rev-parse", "HEAD")
    change("third", INSIDE)
    git(repository, "checkout", "-q", "main")
    return shas


@pytest.fixture
def body(repository: Path, line: dict[str, str]) -> dict[str, Any]:
    return {"repo": str(repository), "good": line["good"], "bad": "line", "lane": "canary V1", "questions": 20}


def test_the_first_parents_between_are_searched_beginning_with_bad(
    client: httpx.Client, body: dict[str, Any], line: dict[str, str]
) -> None:
    answer = client.post("/api/v1/bisects", json=body)
    assert answer.status_code == 201, answer.text
    view = answer.json()
    assert answer.headers["Location"] == f"/api/v1/bisects/{view['bisect_id']}"
    assert (view["good"], view["bad"], view["lane"], view["state"]) == (
        line["good"],
        line["third"],
        "canary V1",
        "running",
    )
    assert (view["commits"], view["remaining"], view["questions"]) == (5, 5, 0), (
        "the two of the merged branch are not walked"
    )
    (step,) = view["steps"]
    assert (step["sha"], step["subject"], step["outcome"]) == (line["third"], "third", None)
    run = client.get(f"/api/v1/runs/{step['run_id']}").json()
    assert (run["base"], run["head"], run["state"]) == (line["good"], line["third"], "queued")
    page = client.get(f"/bisects/{view['bisect_id']}")
    assert page.status_code == 200
    assert "One of 5 commits is the first bad one" in page.text
    listed = client.get("/api/v1/bisects", params={"limit": 1}).json()["bisects"]
    assert listed[0]["bisect_id"] == view["bisect_id"]
    assert view["bisect_id"] in client.get("/bisects").text
    cancelled = client.post(f"/api/v1/bisects/{view['bisect_id']}/cancel", json={"reason": "seen enough"}).json()
    assert (cancelled["state"], cancelled["message"]) == ("cancelled", "seen enough")
    assert client.get(f"/api/v1/runs/{step['run_id']}").json()["state"] == "cancelled"
    assert client.post(f"/api/v1/bisects/{view['bisect_id']}/cancel").json()["reason"] == "already_finished"


@pytest.mark.parametrize(
    ("changes", "status", "reason"),
    [
        ({"good": "line", "bad": "main"}, 422, "not_an_ancestor"),
        ({"good": "line", "bad": "line"}, 422, "nothing_between"),
        ({"good": "main~2", "bad": "main"}, 422, "no_kernels"),
        ({"lane": "canary V9"}, 422, "unknown_lane"),
        ({"bad": "deadbeef"}, 422, "unknown_commit"),
        ({"questions": 0}, 422, "malformed"),
        ({"repo": "--upload-pack=x"}, 422, "malformed"),
        ({"repo": "k\x18ernels"}, 422, "malformed"),
        ({"repo": "https://me:secret@example.org/kernels.git"}, 422, "malformed"),
    ],
)
def test_what_cannot_be_searched_is_refused_by_name(
    client: httpx.Client, body: dict[str, Any], changes: dict[str, Any], status: int, reason: str
) -> None:
    answer = client.post("/api/v1/bisects", json=body | changes)
    assert (answer.status_code, answer.json()["reason"]) == (status, reason), answer.text


def test_only_a_token_that_may_submit_begins_one(private_client: httpx.Client, body: dict[str, Any]) -> None:
    assert private_client.post("/api/v1/bisects", json=body).status_code == 401


def test_unknown_ones_are_told(client: httpx.Client) -> None:
    nobody = "00000000-0000-0000-0000-000000000000"
    assert client.get(f"/api/v1/bisects/{nobody}").json()["reason"] == "unknown_bisect"
    assert client.post(f"/api/v1/bisects/{nobody}/cancel").status_code == 404
    assert client.get("/bisects/nonsense").status_code == 404


def test_a_run_is_repeated_by_a_run_of_its_own(client: httpx.Client, repository: Path) -> None:
    submitted = {"repo": str(repository), "head": "refactor", "lanes": ["canary V1"], "questions": 20, "repeats": 1}
    run = client.post("/api/v1/runs", json=submitted | {"confirm": False}).json()
    jobs = client.get(f"/api/v1/runs/{run['run_id']}").json()["jobs"]
    assert [job["pair"] for job in jobs if job["lane"]] == [0, 0, 1, 1]
    again = client.post(f"/api/v1/runs/{run['run_id']}/repeats", json={"times": 2, "arm": "head"})
    assert again.status_code == 201, again.text
    assert (again.json()["base"], again.json()["head"]) == (run["head"], run["head"])
    view = client.get(f"/api/v1/runs/{again.json()['run_id']}").json()
    assert [job["pair"] for job in view["jobs"] if job["lane"]] == [0, 0, 1, 1]
    told = [event["message"] for event in client.get(f"/api/v1/runs/{run['run_id']}").json()["events"]]
    assert f"head with itself is measured again, 2 times, by run {again.json()['run_id']}" in told
    assert client.post(f"/api/v1/runs/{run['run_id']}/repeats", json={"times": 99}).status_code == 422
    assert client.post("/api/v1/runs/00000000-0000-0000-0000-000000000000/repeats").status_code == 404
