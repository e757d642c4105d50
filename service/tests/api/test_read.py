"""Reading runs: list, one run, report, samples, lanes, workers, health, and errors in general."""

from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from driftline.contracts.report import RunView
from driftline.contracts.words import RunState, Verdict
from driftline_service.database.engine import Sessions
from driftline_service.database.tables import Run
from sqlalchemy import update

AS_JSON = {"Content-Type": "application/json"}
UNKNOWN = "00000000-0000-0000-0000-000000000000"


@pytest.fixture(scope="module")
def run_ids(client: httpx.Client, repository: Path) -> list[str]:
    """Three runs, oldest first."""
    body = {"repo": str(repository), "head": "refactor", "questions": 10}
    return [str(client.post("/api/v1/runs", json=body | {"name": name}).json()["run_id"]) for name in ("a", "b", "c")]


def _finish(sessions: Sessions, view: RunView) -> None:
    """Put a run where the reconciler would put it: done, with its view."""
    now = datetime.now(UTC)
    lanes = [lane.model_copy(update={"verdict": Verdict.EQUIVALENT}) for lane in view.lanes]
    judged = {"state": RunState.DONE, "verdict": Verdict.EQUIVALENT, "lanes": lanes, "finished_at": now}
    stored = view.model_copy(update=judged).model_dump(mode="json")
    with sessions.begin() as session:
        session.execute(
            update(Run).where(Run.id == view.run_id).values(state=RunState.DONE, view=stored, finished_at=now)
        )


def test_the_list_is_paged_and_filtered(client: httpx.Client, run_ids: list[str]) -> None:
    first = client.get("/api/v1/runs", params={"limit": 2}).json()
    assert [run["run_id"] for run in first["runs"]] == run_ids[:0:-1]
    second = client.get(first["next"]).json()
    assert second["runs"][0]["run_id"] == run_ids[0]
    head = first["runs"][0]["head"]
    assert {run["head"] for run in client.get("/api/v1/runs", params={"head": head[:8]}).json()["runs"]} == {head}
    assert client.get("/api/v1/runs", params={"repo": "https://other"}).json() == {"runs": [], "next": None}
    assert client.get("/api/v1/runs", params={"state": "lost"}).json()["reason"] == "malformed"


def test_a_run_shows_as_far_as_it_got(client: httpx.Client, run_ids: list[str]) -> None:
    view = RunView.model_validate(client.get(f"/api/v1/runs/{run_ids[1]}").json())
    assert (str(view.run_id), view.name, view.state, view.verdict) == (run_ids[1], "b", "queued", None)


def test_a_report_comes_when_the_run_is_done(client: httpx.Client, run_ids: list[str], sessions: Sessions) -> None:
    early = client.get(f"/api/v1/runs/{run_ids[0]}/report")
    assert (early.status_code, early.json()["reason"]) == (409, "not_done")
    _finish(sessions, RunView.model_validate(client.get(f"/api/v1/runs/{run_ids[0]}").json()))
    report = client.get(f"/api/v1/runs/{run_ids[0]}/report").json()
    assert (report["name"], report["verdict"]) == ("a", "equivalent")
    for asked in ({"params": {"format": "markdown"}}, {"headers": {"Accept": "text/markdown"}}):
        text = client.get(f"/api/v1/runs/{run_ids[0]}/report", **asked)  # type: ignore[arg-type]
        assert text.headers["content-type"] == "text/markdown; charset=utf-8"
        assert text.text.lstrip().startswith("#")
    done = client.get("/api/v1/runs", params={"state": "done"}).json()["runs"]
    ours = [(run["run_id"], run["verdict"]) for run in done if run["run_id"] in run_ids]  # other tests finish runs too
    assert ours == [(run_ids[0], "equivalent")]


def test_changed_samples_are_paged(client: httpx.Client, run_ids: list[str]) -> None:
    page = client.get(f"/api/v1/runs/{run_ids[2]}/samples", params={"changed": "true", "limit": 5}).json()
    assert page == {"total": 0, "samples": []}
    other = client.get(f"/api/v1/runs/{run_ids[2]}/samples", params={"lane": "canary V9"}).json()
    assert (other["reason"], "'canary V0'" in other["detail"]) == ("unknown_lane", True)
    refused = client.get(f"/api/v1/runs/{run_ids[2]}/samples", params={"changed": "false"})
    assert refused.json()["reason"] == "malformed"


def test_cancelling_happens_once(client: httpx.Client, run_ids: list[str]) -> None:
    first = client.post(f"/api/v1/runs/{run_ids[1]}/cancel", json={"reason": "wrong branch"})
    assert (first.status_code, first.json()["state"]) == (200, "cancelled")
    second = client.post(f"/api/v1/runs/{run_ids[1]}/cancel", json={})
    assert (second.status_code, second.json()["reason"]) == (409, "already_finished")
    report = client.get(f"/api/v1/runs/{run_ids[1]}/report")
    assert "is cancelled and has no report" in report.json()["detail"]


@pytest.mark.parametrize("path", ["", "/report", "/samples", "/events"])
def test_an_unknown_run_is_a_problem(client: httpx.Client, path: str) -> None:
    answer = client.get(f"/api/v1/runs/{UNKNOWN}{path}")
    assert (answer.status_code, answer.json()["reason"]) == (404, "unknown_run")
    assert client.get(f"/api/v1/runs/7{path}").json()["reason"] == "malformed"


def test_lanes_workers_and_health(client: httpx.Client) -> None:
    lanes = client.get("/api/v1/lanes").json()["lanes"]
    assert [entry["lane"]["name"] for entry in lanes if entry["default"]] == ["canary V0", "canary V1"]
    assert isinstance(client.get("/api/v1/workers").json()["workers"], list)
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.get("/readyz").json() == {"status": "ready"}


def test_without_its_database_the_service_says_so(client_without_database: httpx.Client) -> None:
    assert client_without_database.get("/healthz").status_code == 200
    for path in ("/readyz", "/api/v1/runs", f"/api/v1/runs/{UNKNOWN}", f"/api/v1/runs/{UNKNOWN}/events"):
        answer = client_without_database.get(path)
        assert (answer.status_code, answer.json()["reason"]) == (503, "database_unavailable")
        assert answer.headers["retry-after"] == "2"


def test_every_error_is_a_problem(client: httpx.Client) -> None:
    for answer, status, reason in (
        (client.get("/nowhere"), 404, "not_found"),
        (client.delete("/api/v1/runs"), 405, "method_not_allowed"),
        (client.post("/api/v1/runs", content=b"{"), 422, "malformed"),
        (client.post("/api/v1/runs", content=b'{"repo":"\xff"}', headers=AS_JSON), 400, "malformed"),
        (client.post("/api/v1/runs", content=b"[" * 200_000, headers=AS_JSON), 400, "malformed"),
        (client.post(f"/api/v1/runs/{UNKNOWN}/cancel", json={"reason": "a\0b"}), 422, "malformed"),
        (client.get(f"/api/v1/runs/{UNKNOWN}/events", headers={"Last-Event-ID": "9" * 30}), 422, "malformed"),
        (client.post("/api/v1/runs", content=b"x" * 1_100_000), 413, "body_too_large"),
        (client.post("/api/v1/runs", content=iter([b"x" * 600_000] * 2)), 413, "body_too_large"),
    ):
        assert (answer.status_code, answer.json()["reason"]) == (status, reason), answer.text
        assert answer.headers["content-type"] == "application/problem+json"


def test_the_documentation_has_an_example_for_each_write(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    assert document["components"]["schemas"]["SubmitRequest"]["examples"][0]["head"] == "my-branch"
    submit = document["paths"]["/api/v1/runs"]["post"]["responses"]
    assert {"201", "401", "403", "409", "413", "422"} <= set(submit)
    assert "application/problem+json" in submit["409"]["content"]


def test_every_route_documents_the_errors_of_its_kind(client: httpx.Client) -> None:
    document = client.get("/openapi.json").json()
    operations = [
        (path, operation)
        for path, methods in document["paths"].items()
        for operation in methods.values()
        if path.startswith("/api/")
    ]
    assert len(operations) > 10
    for path, operation in operations:
        expected = {"401", "403", "422", "503"} | ({"400", "413"} if "requestBody" in operation else set())
        assert expected <= set(operation["responses"]), path
        assert list(operation["responses"]["422"]["content"]) == ["application/problem+json"], path
