"""The plot holds one line a cell, in its unit, to scale, and nothing that runs."""

from xml.etree import ElementTree

import pytest
from driftline.contracts.words import Metric
from driftline.report.interval_plot import Cell, interval_plot, plotted_cells

SVG = "{http://www.w3.org/2000/svg}"


def _drawn(cells, metric=Metric.EXACT_MATCH, margin=0.025):
    root = ElementTree.fromstring(interval_plot(cells, metric=metric, margin=margin))  # noqa: S314 - our own output
    return root, ["".join(text.itertext()) for text in root.iter(f"{SVG}text")]


def test_cells_with_an_interval_are_drawn(rich_view):
    cells = plotted_cells(rich_view, Metric.EXACT_MATCH)
    assert [(cell.lane, cell.comparison.filter) for cell in cells] == [
        (lane, name) for lane in ("canary V0", "canary V1") for name in ("strict-match", "flexible-extract")
    ]
    _, texts = _drawn(cells)
    assert {"canary V0, strict-match: equivalent", "canary V1, flexible-extract: regressed", "+10", "-10"} <= set(texts)
    assert any("points" in text for text in texts)


def test_logprob_is_in_milli_nats(rich_view):
    _, texts = _drawn(plotted_cells(rich_view, Metric.LOGPROB), Metric.LOGPROB, 0.002)
    assert "canary V1, teacher-forced: regressed" in texts
    assert any("milli-nats" in text for text in texts)


@pytest.mark.parametrize("width", [1e-4, 0.3, 1.0])
def test_points_lie_to_scale(rich_view, width):
    """The middle dot lies where its value does between the ends of the interval."""
    comparison = (
        rich_view.lanes[0]
        .comparisons[0]
        .model_copy(update={"base": 0.5, "head": 0.5 + width / 4, "interval": (-width, width)})
    )
    root, _ = _drawn([Cell("a V0", comparison)])
    series = [group for group in root.iter(f"{SVG}g") if "serie-2" in group.get("class", "").split()]
    low, middle, high = sorted(float(dot.get("cx", "nan")) for group in series for dot in group.iter(f"{SVG}circle"))
    assert (middle - low) / (high - low) == pytest.approx(0.625, abs=0.02)


def test_nothing_runs_and_text_stays_text(rich_view):
    cell = rich_view.lanes[0].comparisons[0].model_copy(update={"filter": "<script>alert(1)</script>"})
    drawn = interval_plot([Cell("<b>", cell)], metric=Metric.EXACT_MATCH, margin=0.025)
    assert b"<script" not in drawn
    assert b"&lt;script&gt;" in drawn
