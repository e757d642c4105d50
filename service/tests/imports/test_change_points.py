"""Change points of a lane's history: over main's commits as they were measured, per repository and filter."""

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import numpy as np
from driftline.contracts.change_points import LaneChangePoints
from driftline.contracts.imports import LaneHistory
from driftline_service.database.history_queries import Measured
from driftline_service.imports.change_points import found_in
from driftline_service.pages import renderer

DASHBOARDS = Path(__file__).parents[3] / "dashboards"

START = datetime(2026, 11, 1, tzinfo=UTC)


def sha(place: int) -> str:
    return f"{place:010x}" + 30 * "0"


def measured(
    place: int, strict: float, *, repository: str = "kernels", questions: int = 1319, **given: Any
) -> Measured:
    usual = {
        "run_id": UUID(int=place), "at": START + timedelta(hours=place), "commit": sha(place), "repository": repository,
        "questions": questions, "stderr": {},
        "metrics": {"exact_match,strict-match": strict, "exact_match,flexible-extract": 0.6},
    }  # fmt: skip
    return Measured(**(usual | given))


def history(**given: Any) -> list[Measured]:
    """Twenty commits at 0.58 and ten at 0.55."""
    noise = np.random.default_rng(1).normal(0, 0.004, 30)
    return [measured(place, (0.58 if place < 20 else 0.55) + noise[place], **given) for place in range(30)]


def test_a_step_is_named_with_its_commits_and_run() -> None:
    found = found_in("canary V1", reversed(history()))
    assert [watched.model_dump() for watched in found.watched] == [
        {"repository": "kernels", "commits": 30, "questions": 1319}
    ]
    (point,) = found.points
    assert (point.metric, point.filter, point.repository) == ("exact_match", "strict-match", "kernels")
    assert (point.previous_commit, point.commit, point.run_id) == (sha(19), sha(20), UUID(int=20))
    assert (round(point.before, 2), round(point.after, 2), point.p_value) == (0.58, 0.55, 0.002)


def test_repositories_are_histories_of_their_own() -> None:
    other = [measured(place, 0.4, repository="fork") for place in range(30)]
    found = found_in("canary V1", [*history(), *other])
    assert [watched.repository for watched in found.watched] == ["fork", "kernels"]
    assert [point.repository for point in found.points] == ["kernels"]


def test_a_commit_measured_again_is_one_commit() -> None:
    again = [measured(40 + repeat, 0.30, commit=sha(5)) for repeat in range(5)]
    found = found_in("canary V1", [*history(), *again])
    assert found.watched[0].commits == 30
    assert [point.commit for point in found.points] == [sha(20)], "five repeats of an odd commit are one spike"


def test_evaluations_over_other_questions_are_left_out() -> None:
    found = found_in("canary V1", [*history(questions=300), *(measured(30 + place, 0.55) for place in range(4))])
    assert (found.watched[0].commits, found.watched[0].questions, found.points) == (4, 1319, [])


def lane_page(changes: LaneChangePoints) -> str:
    """The real template, over an otherwise empty lane."""
    values = {
        "history": LaneHistory(lane="canary V1", configured=True, points=[], more=False), "lane": None, "repository": "",
        "repositories": [], "plotted": [], "changes": changes,
    }  # fmt: skip
    page = bytes(renderer.page(DASHBOARDS, "lane.html", values).body).decode()
    return " ".join(re.sub(r"<[^>]+>", " ", page).split())


def test_the_page_names_the_commits_and_the_levels() -> None:
    found = found_in("canary V1", history())
    (point,) = found.points
    read = lane_page(found)
    assert f"Since {point.commit[:10]} , after {point.previous_commit[:10]} : strict-match" in read
    assert f"strict-match {point.before:.4f} → {point.after:.4f} (p = 0.0020," in read


def test_the_page_says_none_where_enough_was_measured_and_nothing_before() -> None:
    flat = [measured(place, 0.58) for place in range(9)]
    assert "None over 9 of main&#39;s commits" in lane_page(found_in("canary V1", flat)).replace("'", "&#39;")
    assert "Change points" not in lane_page(found_in("canary V1", flat[:5]))


def test_over_http_only_base_arms_count(api: httpx.Client, world: Any) -> None:
    assert api.get("/api/v1/lanes/canary V1/change-points").json() == {"lane": "canary V1", "watched": [], "points": []}
    world.run_until_done(world.submit())
    answer = LaneChangePoints.model_validate(api.get("/api/v1/lanes/canary V1/change-points").json())
    assert [(each.repository, each.commits, each.questions) for each in answer.watched] == [
        ("https://example.org/kernels.git", 1, 3)
    ]
    elsewhere = api.get("/api/v1/lanes/canary V1/change-points", params={"repository": "https://example.org/other"})
    assert elsewhere.json()["watched"] == []
    unknown = api.get("/api/v1/lanes/canary V9/change-points")
    assert (unknown.status_code, unknown.json()["reason"]) == (404, "unknown_lane")
