"""The differences of cells with their intervals and the margin, as one SVG. Knows no rows and no HTML."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from xml.etree.ElementTree import Element

import pygal  # type: ignore[import-untyped]
from pygal.style import Style  # type: ignore[import-untyped]

from driftline.contracts.cell import Comparison
from driftline.contracts.report import RunView
from driftline.contracts.words import Metric, Verdict

sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "pygal"]
"""pygal 3.1 hangs a finder of the old kind into every import of the process, for map plug-ins that nothing here uses;
Python 3.11 warns of it on each import that follows."""


WIDTH = 900
ROW_HEIGHT = 34
FRAME_HEIGHT = 84
"""pixels beside the rows: axis, its title, margins"""

SCALE: dict[Metric | str, float] = {Metric.EXACT_MATCH: 100.0, Metric.LOGPROB: 1000.0}
"""from fractions to points, from nats to milli-nats: figures that people can say"""

UNIT: dict[Metric | str, str] = {Metric.EXACT_MATCH: "points", Metric.LOGPROB: "milli-nats per token"}

BAND, ZERO = "#8a96a3", "#5c6773"
COLORS = {
    Verdict.REGRESSED: "#d64545", Verdict.IMPROVED: "#3b82d6", Verdict.EQUIVALENT: "#3a9147",
    Verdict.UNDERPOWERED: "#7d8894", Verdict.NOT_COMPARABLE: "#b07d1a",
}  # fmt: skip

LOOK = """
.series .line { stroke-width: 3 !important; stroke-opacity: .9; }
.serie-0 .line { stroke-width: .5 !important; }
.serie-1 .line { stroke-width: 1 !important; }
@media (prefers-color-scheme: dark) {
  .axis text, .graph .title { fill: #d7dde4 !important; }
  .axis .line, .axis .guide.line { stroke: #3a444e !important; }
}
"""
"""Readers' settings reach an image too. The series keep colours that are readable on both grounds."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One line of the plot."""

    lane: str
    """or, of two files, the task and metric"""
    comparison: Comparison


def plotted_cells(view: RunView, metric: Metric) -> list[Cell]:
    """The cells of one metric that have an interval to draw."""
    return [
        Cell(lane.name, comparison)
        for lane in view.lanes
        for comparison in lane.comparisons
        if comparison.metric is metric and comparison.interval is not None
    ]


def interval_plot(cells: Sequence[Cell], *, metric: Metric | str, margin: float) -> bytes:
    """An SVG: one line a cell from the top, head - base in the middle of its interval, the margin as a band around 0.

    `margin` is a fraction or nats, as the cells are; axes are in the units of `UNIT`. Any other metric must be a share.
    """
    scaled = SCALE.get(metric, SCALE[Metric.EXACT_MATCH])
    top = len(cells) + 1
    chart = _chart(cells, metric=metric, reach=_reach(cells, margin) * scaled)
    edge = margin * scaled
    chart.add("margin", [(-edge, top), (edge, top)], fill=True, show_dots=False)
    chart.add("zero", [(0, 0), (0, top)], show_dots=False)
    for place, cell in enumerate(cells):
        chart.add(_label(cell), _points(cell.comparison, top - 1 - place, scaled))
    chart.add_xml_filter(without_scripts)
    rendered: bytes = chart.render()
    return rendered


def _points(cell: Comparison, height: int, scaled: float) -> list[dict[str, object]]:
    """The difference as a large dot, the ends of its interval as small ones."""
    assert cell.interval is not None  # noqa: S101 - plotted_cells takes no others
    low, high = cell.interval
    middle = [] if cell.base is None or cell.head is None else [(cell.head - cell.base, 6)]
    return [
        {"value": (scaled * value, height), "node": {"r": radius}} for value, radius in ((low, 2), *middle, (high, 2))
    ]


def without_scripts(root: Element) -> Element:
    """pygal writes its configuration into a script even where nothing is interactive."""
    for parent in list(root.iter()):
        for script in [child for child in parent if str(child.tag).endswith("script")]:
            parent.remove(script)
    return root


def _reach(cells: Sequence[Cell], margin: float) -> float:
    """How far the axis goes to both sides: everything fits, and 0 stays in the middle."""
    ends = [abs(end) for cell in cells for end in cell.comparison.interval or ()]
    return 1.15 * max([margin, *ends])


def _label(cell: Cell) -> str:
    """The verdict stands in words: colour is never the only sign."""
    return f"{cell.lane}, {cell.comparison.filter}: {cell.comparison.verdict.replace('_', ' ')}"


def _chart(cells: Sequence[Cell], *, metric: Metric | str, reach: float) -> pygal.XY:
    colors = (BAND, ZERO, *(COLORS[cell.comparison.verdict] for cell in cells))
    chart = pygal.XY(
        width=WIDTH, height=FRAME_HEIGHT + ROW_HEIGHT * (len(cells) + 1), style=plot_style(colors),
        css=("file://style.css", "file://graph.css", f"inline:{LOOK}"), js=(), show_legend=False,
        xrange=(-reach, reach), range=(0, len(cells) + 1), dots_size=4, truncate_label=-1, show_y_guides=False,
        x_title=f"head - base, {UNIT.get(metric, UNIT[Metric.EXACT_MATCH])}; the band is the margin", x_value_formatter=_tick,
    )  # fmt: skip
    chart.x_labels = _ticks(reach)
    chart.y_labels = [{"label": _label(cell), "value": len(cells) - place} for place, cell in enumerate(cells)]
    return chart


def plot_style(colors: tuple[str, ...]) -> Style:
    """What all plots share: no ground of their own, so that the page's shows."""
    return Style(
        background="transparent", plot_background="transparent", foreground="#2b333b", foreground_strong="#2b333b",
        foreground_subtle="#c5ccd3", opacity=".28", opacity_hover=".28", colors=colors,
        ci_colors=colors, font_family="system-ui, sans-serif", label_font_size=14, major_label_font_size=14, title_font_size=14,
    )  # fmt: skip


def _tick(value: float) -> str:
    return f"{value:+g}" if value else "0"


def _ticks(reach: float) -> list[float]:
    """Round figures from -reach to reach, at most nine: steps of 1, 2 or 5 times a power of ten."""
    exponent = 0
    while 10.0**exponent > reach:
        exponent -= 1
    steps = (factor * 10.0**power for power in range(exponent - 1, exponent + 9) for factor in (1, 2, 5))
    step = next(step for step in steps if reach / step <= 4)
    count = int(reach / step)
    return [round(step * place, 10) for place in range(-count, count + 1)]
