"""Markdown tables whose cells survive hostile text: pipes, newlines, backticks and HTML stay text."""

import re
from collections.abc import Iterable, Sequence

LONGEST_CELL = 300
"""Characters; a compiler's message belongs on the page, not in a comment."""

ESCAPED = str.maketrans({
    "|": "\\|", "`": "\\`", "<": "&lt;", ">": "&gt;", "&": "&amp;", "*": "\\*", "[": "\\[", "]": "\\]",
    "\\": "\\\\", "@": "@\u200b", "#": "\\#", "\0": "\\0",
})  # fmt: skip
"""A mention or an issue number in a child's message must not notify or link anybody."""


EMPHASIS = re.compile(r"(?<!\w)_|_(?!\w)")
"""Underscores that could emphasise. One inside a word cannot, and exact_match is to look as lm-eval prints it."""


def text(value: str) -> str:
    """Somebody else's words as one inert line."""
    line = " ".join(value.split())
    shown = line if len(line) <= LONGEST_CELL else line[: LONGEST_CELL - 1] + "…"
    return EMPHASIS.sub(r"\_", shown.translate(ESCAPED))


def table(header: Sequence[str], align: str, rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table. `align` has one of l, r, c per column; cells are taken as they are."""
    marks = {"l": "---", "r": "---:", "c": ":---:"}
    lines = [_row(header), "|" + "|".join(marks[each] for each in align) + "|"]
    lines += [_row(row) for row in rows]
    return "\n".join(lines)


def _row(cells: Sequence[str]) -> str:
    return "|" + "|".join(cells) + "|"
