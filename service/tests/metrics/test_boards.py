"""Boards, alerts and the page of operations name figures that exist: nothing else would notice a renamed one."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
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
