"""Where two responses part, in words."""

import re
from typing import Final

WORD: Final = re.compile(r"\S+")


def first_different_word(base: str, head: str) -> int | None:
    """Index of the first word in which two responses differ; None if all words are the same."""
    before, after = WORD.findall(base), WORD.findall(head)
    for index, (one, other) in enumerate(zip(before, after, strict=False)):
        if one != other:
            return index
    return None if len(before) == len(after) else min(len(before), len(after))
