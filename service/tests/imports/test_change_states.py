"""What becomes of a change point: confirmed by a run or a person, then settled, with who and why, and never quietly."""

from typing import Any

import httpx
import pytest
from driftline.contracts.words import RunState
from driftline_service.clock import now_utc
from driftline_service.database import audit
from driftline_service.database.tables import Run
from scripted.history import STEP, measured_history, sha
from sqlalchemy import update

LANE = "canary V1"
PATH = f"/api/v1/lanes/{LANE}/change-points"


@pytest.fixture
def measured(world: Any) -> dict[int, Any]:
    return measured_history(world)


def decided(api: httpx.Client, state: str, why: str = "seen in #12", commit: str | None = None) -> httpx.Response:
    return api.post(PATH, json={"commit": commit or sha(STEP)[:8], "state": state, "why": why})


def test_a_point_goes_from_detected_to_settled_with_who_and_why(api: httpx.Client, measured: Any, world: Any) -> None:
    (point,) = api.get(PATH).json()["points"]
    assert (point["commit"], point["state"], point["decisions"]) == (sha(STEP), "detected", [])
    for state in ("confirmed", "acknowledged", "fixed"):
        (point,) = decided(api, state, f"it is {state}").json()["points"]
        assert point["state"] == state
    assert [(each["state"], each["who"], each["why"]) for each in point["decisions"]] == [
        ("confirmed", "admin", "it is confirmed"), ("acknowledged", "admin", "it is acknowledged"),
        ("fixed", "admin", "it is fixed"),
    ]  # fmt: skip
    with world.sessions() as session:
        noted = [
            entry for entry in audit.entries(session, before=None, limit=9) if entry.action.startswith("change_point")
        ]
    assert [entry.action for entry in noted] == [
        "change_point_fixed",
        "change_point_acknowledged",
        "change_point_confirmed",
    ]
    assert noted[0].details == {"lane": LANE, "commit": sha(STEP), "filter": "strict-match", "why": "it is fixed"}
    page = " ".join(api.get(f"/lanes/{LANE}").text.split())
    assert "fixed by admin," in page and "it is acknowledged" in page


def test_what_may_not_follow_is_refused_with_what_may(api: httpx.Client, measured: Any) -> None:
    refused = decided(api, "fixed").json()
    assert refused["reason"] == "wrong_state"
    assert "is detected; it may become confirmed, ignored" in refused["detail"]
    assert decided(api, "ignored").status_code == 200
    assert decided(api, "acknowledged").status_code == 409
    assert decided(api, "confirmed").json()["points"][0]["state"] == "confirmed"
    unknown = decided(api, "confirmed", commit="dead")
    assert (unknown.status_code, unknown.json()["reason"]) == (404, "unknown_change_point")
    assert f"there are {sha(STEP)[:12]}" in unknown.json()["detail"]
    assert decided(api, "confirmed", why="").status_code == 422


def test_writing_needs_a_token(api: httpx.Client, measured: Any) -> None:
    body = {"commit": sha(STEP), "state": "confirmed", "why": "x"}
    answer = httpx.post(f"{api.base_url}{PATH}", json=body)
    assert answer.status_code == 401


def test_a_run_of_the_two_commits_confirms_it(api: httpx.Client, measured: dict[int, Any], world: Any) -> None:
    """As the run's judgement would stand; what a person decided afterwards stays above it."""
    lanes = [{"name": LANE, "verdict": "regressed", "confirmed": "no"}]
    with world.sessions.begin() as session:
        values = {"base_sha": sha(STEP - 1), "head_sha": sha(STEP), "state": RunState.DONE, "finished_at": now_utc()}
        session.execute(update(Run).where(Run.id == measured[17]).values(view={"lanes": lanes}, **values))
    assert api.get(PATH).json()["points"][0]["state"] == "detected", "a suspected hit confirms nothing"
    with world.sessions.begin() as session:
        view = {"lanes": [lanes[0] | {"confirmed": "yes"}]}
        session.execute(update(Run).where(Run.id == measured[17]).values(view=view))
    (point,) = api.get(PATH).json()["points"]
    assert (point["state"], point["decisions"][0]["who"]) == ("confirmed", "driftline")
    assert str(measured[17]) in point["decisions"][0]["why"]
    assert decided(api, "ignored").json()["points"][0]["state"] == "ignored"


def test_a_single_spike_is_nothing_to_decide_on(api: httpx.Client, measured: Any) -> None:
    assert [point["commit"] for point in api.get(PATH).json()["points"]] == [sha(STEP)]
    assert decided(api, "confirmed", commit=sha(3)).status_code == 404
