"""Lanes and imports as pages: what was reported is never shown as measured, and foreign text stays text."""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
from driftline.contracts.imports import HistoryPoint, ImportedScore, PromoteRequest
from driftline_service.database import worker_queries
from driftline_service.database.tables import ImportKind
from driftline_service.imports import promotion
from driftline_service.imports.reported import NewScore
from driftline_service.lanes import Lanes
from driftline_service.pages.history_plot import MOST_POINTS, history_plot, plotted_points

HOSTILE = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>{{ 7*7 }}"


def test_an_empty_lane_says_how_to_fill_it(api: httpx.Client) -> None:
    page = api.get("/lanes/canary V1")
    assert page.status_code == 200
    assert "Nothing measured or reported yet" in page.text
    assert (
        "driftline import results/ --commit SHA --lane &#34;canary V1&#34;" in page.text
        or 'lane "canary V1"' in page.text
    )
    assert api.get("/lanes/canary V1/history.svg").status_code == 404
    assert "No imports yet" in api.get("/imports").text
    assert 'href="/lanes"' in api.get("/").text


def test_a_lane_tells_measured_from_reported(api: httpx.Client, world: Any, reported: Callable[..., Any]) -> None:
    run_id = world.submit()
    world.run_until_done(run_id)
    stored = reported(note="from a shared machine", warnings=("2 answers are [invalid]",))
    asked = PromoteRequest(decided_by="Root", reason="checked", environment_id="env-1")
    with world.sessions.begin() as session:
        promotion.promote(session, stored.import_id, asked, Lanes((world.lane(),), ()), datetime.now(UTC))
    page = api.get("/lanes/canary V1").text
    assert page.count(f'href="/runs/{run_id}"') == 2
    assert page.count(f'href="/imports/{stored.import_id}"') == 1
    assert "by Ada: from a shared machine" in page
    assert "baseline" in page
    listed = api.get("/lanes").text
    assert '<td class="num">2</td><td class="num">1</td>' in listed
    one = api.get(f"/imports/{stored.import_id}").text
    assert "Reported by Ada, not measured here." in one
    assert "2 answers are [invalid]" in one
    assert "Root made it a baseline in environment env-1: checked" in one
    assert "num_fewshot" in one
    assert f"/imports/{stored.import_id}" in api.get("/imports").text


def test_a_run_says_on_whose_word_its_base_rests(api: httpx.Client, world: Any, reported: Callable[..., Any]) -> None:
    with world.sessions.begin() as session:
        worker_queries.remember_worker(session, world.worker.facts, world.clock())
    stored = reported()
    asked = PromoteRequest(decided_by="Root", reason="checked", environment_id="env-1")
    with world.sessions.begin() as session:
        promotion.promote(session, stored.import_id, asked, Lanes((world.lane(),), ()), datetime.now(UTC))
    run_id = world.submit()
    world.run_until_done(run_id)
    page = api.get(f"/runs/{run_id}").text
    assert f"base was not measured here: it is import {stored.import_id}, reported by Ada; Root promoted it" in page
    assert f'<a href="/imports/{stored.import_id}">reported by a person, promoted to baseline</a>' in page
    view = api.get(f"/api/v1/runs/{run_id}").json()
    assert (view["headline"]["color"], view["lanes"][0]["verdict"]) == ("neutral", "not_comparable")
    markdown = api.get(f"/api/v1/runs/{run_id}/report", params={"format": "markdown"})
    assert "base was not measured here" in markdown.text
    rescored = api.get(f"/api/v1/runs/{run_id}/rescore").json()
    assert [(each["name"], each["filters"][0]["questions"]) for each in rescored["evaluations"]] == [
        ("canary V1 base", 10), ("canary V1 head", 3),
    ]  # fmt: skip


def test_the_chart_holds_every_point(api: httpx.Client, reported: Callable[..., Any]) -> None:
    scores = (NewScore("exact_match", "strict-match", 0.5838, 0.0136, 1319),)
    for number in range(3):
        reported(
            kind=ImportKind.FIGURES,
            samples=tuple,
            content_hash=f"{number}" * 64,
            scores=scores,
            commit_sha=f"{number}" * 7,
        )
    answer = api.get("/lanes/canary V1/history.svg")
    assert answer.headers["content-type"].startswith("image/svg+xml")
    assert "script" not in answer.text
    root = ElementTree.fromstring(answer.text)  # noqa: S314 - our own
    dots = [node for node in root.iter() if node.tag.endswith("circle") and "dot" in (node.get("class") or "")]
    assert len(dots) == 3
    assert "strict-match, reported" in answer.text
    assert "measured" not in answer.text


def test_markup_in_a_report_stays_text(api: httpx.Client, reported: Callable[..., Any]) -> None:
    hostile = reported(
        reported_by=HOSTILE, note=HOSTILE, warnings=(HOSTILE,), facts={"task": HOSTILE}, details={"model": HOSTILE},
        scores=(NewScore("exact_match", HOSTILE, 0.5, None, 10),), repository="https://example.org/" + HOSTILE,
    ).import_id  # fmt: skip
    for path in ("/lanes/canary V1", f"/imports/{hostile}", "/imports", "/lanes/canary V1/history.svg"):
        text = api.get(path).text
        assert "<script>alert" not in text, path
        assert "<img src=x" not in text, path
        assert "{{ 7*7 }}" in text, path


@pytest.mark.parametrize("path", ["/lanes/nowhere", "/lanes/nowhere/history.svg", "/imports/7", f"/imports/{'0' * 32}"])
def test_what_is_not_there_is_told_to_people(api: httpx.Client, path: str) -> None:
    answer = api.get(path)
    assert answer.status_code == 404
    assert answer.headers["content-type"].startswith("text/html")
    assert "there is no" in answer.text.lower()


def history_point(value: float, stderr: float | None) -> HistoryPoint:
    score = ImportedScore(metric="exact_match", filter="strict-match", value=value, stderr=stderr, questions=10)
    return HistoryPoint(
        source="measured", at=datetime.now(UTC), commit="a" * 40, repository=None, questions=10, scores=[score],
        run_id=None, import_id=None, has_samples=True, baseline=False, reported_by=None, note="",
    )  # fmt: skip


def test_a_plot_of_one_point_without_error_and_of_many() -> None:
    assert history_plot([history_point(0.0, None)]).startswith(b"<?xml")
    assert history_plot([history_point(1.0, 0.0)]).startswith(b"<?xml")
    many = [history_point(number / 1000, 0.01) for number in range(100)]
    assert plotted_points(many) == many[-MOST_POINTS:]
    assert history_plot(plotted_points(many)).count(b"dot reactive") >= MOST_POINTS
