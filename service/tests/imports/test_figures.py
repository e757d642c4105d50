"""Results without samples over HTTP, an admin's decisions, the list and a lane's history."""

from typing import Any
from uuid import uuid4

import httpx
import pytest
from driftline.contracts.imports import ImportDetail, LaneHistory

UNKNOWN = "00000000-0000-0000-0000-000000000000"


def figures(*points: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"reported_by": "Ada", "figures": {"format": "driftline-figures-1", "points": list(points)}} | more


def point(**changes: Any) -> dict[str, Any]:
    scores = [
        {"filter": "strict-match", "value": 0.5838, "stderr": 0.0136},
        {"filter": "flexible-extract", "value": 0.6058},
    ]
    usual = {"lane": "granite-4.0-tiny V1", "commit": "316b1bf", "questions": 1319, "scores": scores}
    return usual | changes


def test_figures_are_stored_shown_and_stored_once(api: httpx.Client) -> None:
    body = figures(point(note="as printed"), point(commit="2b6b1d7"), note="a pull request")
    answer = api.post("/api/v1/imports/figures", json=body)
    assert answer.status_code == 201, answer.text
    first, second = answer.json()["imports"]
    assert first["note"] == "a pull request: as printed"
    assert (first["kind"], first["source"], first["reported_by"], first["baseline"]) == (
        "figures",
        "reported",
        "Ada",
        None,
    )
    assert first["scores"][0] == {
        "metric": "exact_match", "filter": "strict-match", "value": 0.5838, "stderr": 0.0136, "questions": 1319,
    }  # fmt: skip
    assert first["scores"][1]["stderr"] is None
    again = api.post("/api/v1/imports/figures", json=body | {"reported_by": "Bob"})
    assert again.status_code == 200
    assert [each["import_id"] for each in again.json()["imports"]] == [first["import_id"], second["import_id"]]
    assert again.json()["imports"][0]["reported_by"] == "Ada"


def test_one_bad_point_stores_none(api: httpx.Client) -> None:
    for bad, reason, word in (
        (point(lane="granite V9"), "unknown_lane", "'granite V9'"),
        (point(), "duplicate_point", "points 1 and 2"),
        (point(commit="nothex!"), "malformed", "commit"),
        (point(scores=[]), "malformed", "scores"),
        (point(scores=2 * [{"filter": "strict-match", "value": 0.5}]), "malformed", "given twice"),
        (point(scores=[{"filter": "strict-match", "value": 58.38}]), "malformed", "less than or equal to 1"),
        (point(repository="https://me:secret@example.org/x"), "malformed", "no password"),
        (point(questions=0), "malformed", "questions"),
    ):
        answer = api.post("/api/v1/imports/figures", json=figures(point(), bad))
        assert (answer.status_code, answer.json()["reason"]) == (422, reason), answer.text
        assert word in answer.json()["detail"]
        assert answer.headers["content-type"] == "application/problem+json"
    assert api.get("/api/v1/imports").json() == {"imports": [], "next": None}


def test_writing_needs_the_token(api: httpx.Client) -> None:
    for path, body in (
        ("/figures", figures(point())),
        (f"/{UNKNOWN}/promote", {"decided_by": "x", "reason": "y"}),
        (f"/{UNKNOWN}/demote", {"decided_by": "x", "reason": "y"}),
        (f"/{UNKNOWN}/withdraw", {"decided_by": "x", "reason": "y"}),
    ):
        refused = api.post(f"/api/v1/imports{path}", json=body, headers={"Authorization": "Bearer wrong"})
        assert (refused.status_code, refused.json()["reason"]) == (403, "forbidden"), path


def test_decisions_are_told_by_name(api: httpx.Client) -> None:
    stored = api.post("/api/v1/imports/figures", json=figures(point())).json()["imports"][0]["import_id"]
    decision = {"decided_by": "Root", "reason": "typed wrongly"}
    refused = api.post(f"/api/v1/imports/{stored}/promote", json=decision)
    assert (refused.status_code, refused.json()["reason"]) == (422, "no_samples")
    refused = api.post(f"/api/v1/imports/{stored}/demote", json=decision)
    assert (refused.status_code, refused.json()["reason"]) == (409, "not_promoted")
    refused = api.post(f"/api/v1/imports/{stored}/withdraw", json={"decided_by": "Root", "reason": ""})
    assert refused.json()["reason"] == "malformed", "a decision without a reason is none"
    withdrawn = api.post(f"/api/v1/imports/{stored}/withdraw", json=decision)
    assert withdrawn.json()["withdrawn_at"] is not None
    detail = ImportDetail.model_validate(api.get(f"/api/v1/imports/{stored}").json())
    assert [event.message for event in detail.events][1:] == ["Root withdrew it: typed wrongly"]
    history = LaneHistory.model_validate(api.get("/api/v1/lanes/granite-4.0-tiny V1/history").json())
    assert history.points == []
    for path in ("", "/rescore"):
        unknown = api.get(f"/api/v1/imports/{uuid4()}{path}")
        assert (unknown.status_code, unknown.json()["reason"]) == (404, "unknown_import")
    assert api.get(f"/api/v1/imports/{stored}/rescore").json()["reason"] == "no_samples"


def test_the_list_is_paged_and_filtered(api: httpx.Client) -> None:
    points = [point(commit=f"{number:07x}", lane=lane) for number, lane in enumerate(
        ["canary V0", "canary V1", "canary V0"])]  # fmt: skip
    for each in points:
        api.post("/api/v1/imports/figures", json=figures(each))
    first = api.get("/api/v1/imports", params={"limit": 2}).json()
    assert [each["commit"] for each in first["imports"]] == ["0000002", "0000001"]
    assert [each["commit"] for each in api.get(first["next"]).json()["imports"]] == ["0000000"]
    by_lane = api.get("/api/v1/imports", params={"lane": "canary V0"}).json()["imports"]
    assert [each["commit"] for each in by_lane] == ["0000002", "0000000"]
    assert len(api.get("/api/v1/imports", params={"commit": "0000001"}).json()["imports"]) == 1


def test_history_tells_measured_from_reported(api: httpx.Client, world: Any) -> None:
    run_id = world.submit()
    world.run_until_done(run_id)
    api.post("/api/v1/imports/figures", json=figures(point(
        lane="canary V1", measured_at="2025-09-26T12:00:00Z", repository="https://example.org/kernels.git")))  # fmt: skip
    history = LaneHistory.model_validate(api.get("/api/v1/lanes/canary V1/history").json())
    assert [(each.source, each.questions) for each in history.points] == [
        ("reported", 1319), ("measured", 3), ("measured", 3),
    ]  # fmt: skip
    assert {each.commit for each in history.points[1:]} == {"b" * 40, "d" * 40}
    reported, measured = history.points[0], history.points[1]
    assert (reported.run_id, reported.has_samples, reported.reported_by) == (None, False, "Ada")
    assert (measured.run_id, measured.import_id, measured.repository) == (
        run_id,
        None,
        "https://example.org/kernels.git",
    )
    assert {score.filter: score.value for score in measured.scores} == {"strict-match": 1.0, "flexible-extract": 1.0}
    newest = api.get("/api/v1/lanes/canary V1/history", params={"limit": 2}).json()
    assert ([each["source"] for each in newest["points"]], newest["more"]) == (["measured", "measured"], True)
    other = api.get("/api/v1/lanes/canary V1/history", params={"repository": "https://example.org/other"}).json()
    assert other["points"] == []
    unknown = api.get("/api/v1/lanes/canary V9/history")
    assert (unknown.status_code, unknown.json()["reason"]) == (404, "unknown_lane")
    assert "'canary V0'" in unknown.json()["detail"]


def test_a_run_is_scored_again(api: httpx.Client, world: Any) -> None:
    run_id = world.submit()
    early = api.get(f"/api/v1/runs/{run_id}/rescore")
    assert (early.status_code, early.json()["reason"]) == (409, "nothing_to_rescore")
    said = world.worker.lines

    def lines(spec: Any) -> list[dict[str, Any]]:
        """On head, lm-eval is said to have scored every question wrong."""
        told: list[dict[str, Any]] = said(spec)
        if spec.arm == "head" and told[-1]["type"] == "scores":
            told[-1]["right"]["strict-match"] = []
        return told

    world.worker.lines = lines
    world.run_until_done(run_id)
    report = api.get(f"/api/v1/runs/{run_id}/rescore").json()
    assert report["same"] is False
    base, head = report["evaluations"]
    assert (base["name"], base["differences"]) == ("canary V1 base", [])
    assert [(each["filter"], each["stored"], each["rescored"], each["extracted"]) for each in head["differences"]] == [
        ("strict-match", 0.0, 1.0, "42")
    ] * 3
    assert head["filters"][0] == {
        "filter": "strict-match", "questions": 3, "stored_mean": 0.0, "rescored_mean": 1.0, "differences": 3,
    }  # fmt: skip
    assert api.get(f"/api/v1/runs/{UNKNOWN}/rescore").json()["reason"] == "unknown_run"


@pytest.mark.parametrize("path", ["/api/v1/imports", "/api/v1/lanes/canary V1/history"])
def test_reading_needs_no_token(api: httpx.Client, path: str) -> None:
    assert httpx.get(f"{api.base_url}{path}").status_code == 200
