"""A response cut at its first differing word, for pages to mark. The index comes with the sample."""

import re
from dataclasses import dataclass

WORD = re.compile(r"\S+")
"""What driftline.judge counts as a word."""


@dataclass(frozen=True, slots=True)
class MarkedText:
    """`before + word + after` is the whole text; `ended` if it stops where the other goes on."""

    before: str
    word: str
    after: str
    ended: bool


def marked_text(text: str, index: int | None) -> MarkedText:
    """`text` cut at word number `index`, counted from 0; uncut if `index` is None."""
    if index is None:
        return MarkedText(before=text, word="", after="", ended=False)
    for place, found in enumerate(WORD.finditer(text)):
        if place == index:
            return MarkedText(text[: found.start()], found.group(), text[found.end() :], ended=False)
    return MarkedText(before=text, word="", after="", ended=True)
