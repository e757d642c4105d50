"""A comparison of two files as one HTML page that needs nothing else: plots, tables, and changed answers side by side."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from driftline.comparison import Compared, TestedCell, changed_answers
from driftline.report import compared_text, figures
from driftline.report.interval_plot import Cell, interval_plot
from driftline.report.marked_text import marked_text

MOST_ANSWERS: Final = 100
"""Changed answers shown a task: a page of some 500 kB. The samples files have all."""

MARKS: Final = {"regressed": "✕", "improved": "▲", "equivalent": "=", "underpowered": "?", "not_comparable": "≠"}
"""Colour is never the only sign."""


def compared_page(compared: Compared) -> str:
    """The page. Reads the changed answers' texts from the samples files.

    Raises:
        BadOutputError, OSError: if a samples file changed or vanished meanwhile.
    """
    loader = FileSystemLoader(Path(__file__).parent)
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["shown"] = shown
    page = environment.get_template("compared_page.html").render(
        compared=compared, text=compared_text, figures=figures, marks=MARKS, plots=list(_plots(compared)),
        explanation=compared_text.explanation(compared), answers=list(changed_answers(compared, MOST_ANSWERS)),
        most=MOST_ANSWERS, marked_text=marked_text,
    )  # fmt: skip
    return shown(page)


def shown(value: str) -> str:
    """Text that an HTML file can hold: NUL and halves of surrogate pairs as signs."""
    return value.replace("\0", "␀").encode("utf-8", "backslashreplace").decode()


def _plots(compared: Compared) -> Iterator[Markup]:
    """One plot a margin, of the metrics that are shares."""
    drawn = [
        each for each in compared.cells if each.cell is not None and each.fraction and each.cell.margin is not None
    ]
    for margin, group in groupby(sorted(drawn, key=_margin), key=_margin):
        cells = [Cell(f"{each.comparison.task}, {each.comparison.metric}", each.comparison) for each in group]
        svg = interval_plot(cells, metric="", margin=margin).decode()
        yield Markup(svg[svg.index("<svg") :])  # noqa: S704 - drawn here; pygal escapes the labels


def _margin(each: TestedCell) -> float:
    return each.cell.margin or 0.0 if each.cell else 0.0
