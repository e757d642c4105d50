"""Boards, alerts and the page of operations name figures that exist: nothing else would notice a renamed one."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from driftline_service.database.engine import Sessions
from driftline_service.metrics.served import Served
from driftline_service.metrics.state import QueueState
from prometheus_client import CollectorRegistry
from prometheus_client.core import Metric

PROJECT = Path(__file__).parents[3]
FILES = ("dashboards/grafana/driftline.json", "dashboards/prometheus/alerts.yml", "docs/operations.md")
SUFFIXES = {"counter": ("_total",), "histogram": ("", "_bucket", "_count", "_sum"), "gauge": ("",)}


def _names(metrics: list[Metric]) -> set[str]:
    return {metric.name + suffix for metric in metrics for suffix in SUFFIXES[metric.type]}


@pytest.fixture
def known(core_sessions: Sessions) -> set[str]:
    queue = QueueState(core_sessions, lambda: datetime.now(UTC))
    registry: CollectorRegistry = Served().registry
    return _names(list(queue.collect())) | _names(list(registry.collect()))


@pytest.mark.parametrize("file", FILES)
def test_every_figure_named_exists(file: str, known: set[str]) -> None:
    named = set(re.findall(r"\bdriftline_[a-z_]+\b", (PROJECT / file).read_text()))
    assert named
    assert named <= known


def test_the_page_of_operations_explains_every_figure(known: set[str]) -> None:
    text = (PROJECT / "docs/operations.md").read_text()
    derived = ("_bucket", "_count", "_sum")
    assert {name for name in known if not name.endswith(derived)} <= set(re.findall(r"driftline_[a-z_]+", text))


def test_the_board_is_json_with_a_query_in_every_panel() -> None:
    board = json.loads((PROJECT / FILES[0]).read_text())
    panels = [panel for panel in board["panels"] if panel["type"] != "row"]
    assert len(panels) > 10
    assert all(target["expr"] for panel in panels for target in panel["targets"])


ASKED_FOR = (
    "driftline_jobs", "driftline_oldest_queued_job_seconds", "driftline_job_outcomes_total", "driftline_child_seconds_total",
    "driftline_webhook_lag_seconds", "driftline_reconciler_lag_seconds", "driftline_samples_total",
    "driftline_request_seconds_bucket",
)  # fmt: skip
"""Queue length and age, outcomes by class, GPU seconds a verdict, both lags, samples taken in, how fast answers are."""


def test_the_one_board_shows_what_was_asked_for() -> None:
    board = json.loads((PROJECT / FILES[0]).read_text())
    shown = " ".join(target["expr"] for panel in board["panels"] for target in panel.get("targets", ()))
    assert [name for name in ASKED_FOR if name not in shown] == []
    assert 'child_seconds_total{queue=~"gpu-.+"}' in shown
    rows = [panel["title"] for panel in board["panels"] if panel["type"] == "row"]
    assert rows == ["Is it healthy?", "What is slow?", "What is stuck?"]
    identities = [panel["id"] for panel in board["panels"]]
    assert len(set(identities)) == len(identities)


def test_whatever_can_stand_still_has_an_alert() -> None:
    (group,) = yaml.safe_load((PROJECT / FILES[1]).read_text())["groups"]
    rules = " ".join(rule["expr"] for rule in group["rules"])
    still = ("reconciler_present", "reconciler_lag", "webhook_lag", "oldest_queued_job", "workers", "attempt_failures")
    assert [name for name in still if f"driftline_{name}" not in rules] == []
    assert 'up{job="driftline"} == 0' in rules
    scraped = yaml.safe_load((PROJECT / "dashboards/prometheus/prometheus.yml").read_text())["scrape_configs"]
    assert [job["job_name"] for job in scraped] == ["driftline"]
