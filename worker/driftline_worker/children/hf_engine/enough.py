"""The worker's word that an evaluation has asked enough: a file that appears beside the spec while the child works.

A child reads it and can write nowhere near it. It holds one whole number: so many questions of the fixed order are the
evaluation, and nothing beyond them is to be asked.
"""

from pathlib import Path

FILE_NAME = "enough"


class Enough(Exception):  # noqa: N818 - what it is
    """Raised between two batches once the questions that are wanted are all answered."""

    def __init__(self, after: int) -> None:
        super().__init__(f"the first {after} questions are enough")
        self.after = after


def enough_after(folder: Path) -> int | None:
    """How many questions are enough, or None while nobody said so. What is no positive number says nothing."""
    try:
        text = (folder / FILE_NAME).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(text) if text.isdecimal() and int(text) > 0 else None
