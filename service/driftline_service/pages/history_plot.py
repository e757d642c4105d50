"""A lane's scores over its history as one SVG: measured points joined, reported ones hollow and alone."""

from collections.abc import Sequence

import pygal  # type: ignore[import-untyped]
from driftline.contracts.imports import HistoryPoint, ImportedScore
from driftline.contracts.words import Metric
from driftline.report.interval_plot import LOOK, plot_style, without_scripts

WIDTH, HEIGHT = 900, 360
"""pixels"""

Z_95 = 1.959963984540054
"""The normal quantile of 97.5 %: lm-eval's stderr is that of a mean."""

MOST_POINTS = 60
"""More commits than this cannot be told apart on an axis 900 pixels wide."""

MOST_LABELS = 20
LONGEST_SHA = 7

COLORS = ("#3b82d6", "#b0567d", "#3a9147", "#b07d1a", "#7a63c7", "#5c6773")
"""One a filter, readable on light and dark ground; measured and reported share it."""

HOLLOW = "fill: none; stroke-width: 2; stroke-opacity: 1"


def plotted_points(points: Sequence[HistoryPoint]) -> list[HistoryPoint]:
    """The newest points that have an exact_match to draw."""
    return [point for point in points if _scores(point)][-MOST_POINTS:]


def history_plot(points: Sequence[HistoryPoint]) -> bytes:
    """An SVG of exact_match by filter, oldest point first, each with its 95 % interval where lm-eval gave a stderr.

    The interval is of one evaluation alone: it says nothing of the difference of two (docs/statistics.md).
    """
    filters = sorted({name for point in points for name in _scores(point)}, reverse=True)
    series = [(name, source) for name in filters for source in ("measured", "reported") if _has(points, name, source)]
    chart = _chart(points, tuple(COLORS[filters.index(name) % len(COLORS)] for name, _ in series))
    for name, source in series:
        values = [_node(point, name) if point.source == source else None for point in points]
        chart.add(f"{name}, {source}", values, stroke=source == "measured")
    chart.add_xml_filter(without_scripts)
    rendered: bytes = chart.render()
    return rendered


def _scores(point: HistoryPoint) -> dict[str, ImportedScore]:
    return {score.filter: score for score in point.scores if score.metric == Metric.EXACT_MATCH}


def _has(points: Sequence[HistoryPoint], name: str, source: str) -> bool:
    return any(point.source == source and name in _scores(point) for point in points)


def _node(point: HistoryPoint, name: str) -> dict[str, object] | None:
    score = _scores(point).get(name)
    if score is None:
        return None
    node: dict[str, object] = {"value": score.value, "node": {"r": 5}}
    if point.source == "reported":
        node["style"] = HOLLOW
    if score.stderr is not None:
        reach = Z_95 * score.stderr
        node["ci"] = {"low": max(0.0, score.value - reach), "high": min(1.0, score.value + reach)}
    return node


def _chart(points: Sequence[HistoryPoint], colors: tuple[str, ...]) -> pygal.Line:
    chart = pygal.Line(
        width=WIDTH, height=HEIGHT, style=plot_style(colors), js=(), css=("file://style.css", "file://graph.css", f"inline:{LOOK}"),
        range=_range(points), legend_at_bottom=True, legend_at_bottom_columns=2, truncate_label=-1, truncate_legend=-1,
        y_title="exact_match", value_formatter=lambda value: f"{value:.3f}", x_label_rotation=30, show_minor_x_labels=False,
        x_labels_major_every=-(-len(points) // MOST_LABELS),
    )  # fmt: skip
    chart.x_labels = [point.commit[:LONGEST_SHA] for point in points]
    return chart


def _range(points: Sequence[HistoryPoint]) -> tuple[float, float]:
    """All intervals fit, with room; never closer than two points, so that a flat history looks flat."""
    scores = [score for point in points for score in _scores(point).values()]
    low = min(score.value - Z_95 * (score.stderr or 0.0) for score in scores)
    high = max(score.value + Z_95 * (score.stderr or 0.0) for score in scores)
    room = max(0.1 * (high - low), 0.01)
    return max(0.0, low - room), min(1.0, high + room)
