"""GET /metrics over HTTP."""

import httpx
from prometheus_client.parser import text_string_to_metric_families

UNKNOWN = "00000000-0000-0000-0000-000000000000"


def _samples(client: httpx.Client) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    answer = client.get("/metrics")
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/plain")
    families = text_string_to_metric_families(answer.text)
    return {(s.name, frozenset(s.labels.items())): s.value for family in families for s in family.samples}


def test_answers_are_timed_by_route_and_not_by_path(client: httpx.Client) -> None:
    def count() -> float:
        labels = {"method": "GET", "route": "/api/v1/runs/{run_id}", "status": "404"}
        return _samples(client).get(("driftline_request_seconds_count", frozenset(labels.items())), 0)

    before = count()
    client.get(f"/api/v1/runs/{UNKNOWN}")
    client.get(f"/api/v1/runs/{UNKNOWN[:-1]}1")
    assert count() == before + 2


def test_a_path_that_is_no_route_makes_no_label_of_its_own(client: httpx.Client) -> None:
    client.request("BREW", "/some/stranger/made/this/up")
    seen = {dict(labels)["route"] for name, labels in _samples(client) if name == "driftline_request_seconds_count"}
    assert not any("stranger" in route for route in seen)
    methods = {dict(labels)["method"] for name, labels in _samples(client) if name == "driftline_request_seconds_count"}
    assert "BREW" not in methods


def test_without_a_database_the_scrape_fails_as_not_ready(client_without_database: httpx.Client) -> None:
    answer = client_without_database.get("/metrics")
    assert (answer.status_code, answer.json()["reason"]) == (503, "database_unavailable")
