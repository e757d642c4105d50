"""A comparison of two files as Markdown, for a pull request or a CI summary."""

from collections.abc import Iterator

from driftline.comparison import Compared
from driftline.report import compared_text, figures
from driftline.report.tables import table, text

HEADER = (
    "Task", "Metric", "Filter", "n", "Base", "Head", "Head − base", "90 % interval", "Lost", "Gained", "p", "p (Holm)",
    "Smallest visible drop", "Test", "Verdict",
)  # fmt: skip


def compared_markdown(compared: Compared) -> str:
    """The verdict in a sentence, one row a cell, then every problem."""
    return "\n\n".join(_blocks(compared)) + "\n"


def _blocks(compared: Compared) -> Iterator[str]:
    yield f"## {text(compared_text.MEANING[compared.verdict])}"
    yield (
        f"base {text(compared_text.model(compared.base))}, {text(compared.base.results.path.name)}; "
        f"head {text(compared_text.model(compared.head))}, {text(compared.head.results.path.name)}; "
        f"margin {100 * compared.wanted.margin:g} points"
    )
    if compared.cells:
        yield table(HEADER, "lllrrrrrrrrrrll", [_row(compared, place) for place in range(len(compared.cells))])
    if inside := compared_text.significant_inside(compared):
        yield "\n".join(f"- {text(told)}" for told in inside)
    for title, blocks in (("Problems", True), ("Notes", False)):
        told = [each for each in compared.problems if each.blocks is blocks]
        if told:
            yield f"### {title}"
            yield "\n".join(f"- `{each.code}`: {text(each.message)}" for each in told)


def _row(compared: Compared, place: int) -> tuple[str, ...]:
    each = compared.cells[place]
    cell = each.comparison
    return (
        text(cell.task), text(str(cell.metric)), text(cell.filter), str(cell.n), figures.score(cell.base),
        figures.score(cell.head), compared_text.difference(each), compared_text.interval(each), figures.count(cell.lost),
        figures.count(cell.gained), figures.p_value(cell.p_value), figures.p_value(cell.p_adjusted),
        compared_text.visible(each),
        figures.UNKNOWN if each.cell is None else compared_text.test_name(cell), f"**{cell.verdict}**",
    )  # fmt: skip
