"""gsm8k's scoring, our own copy of it: what is extracted from a response, and whether it is right.

Equal to lm-eval's, by test. Nothing of lm-eval is imported, and nothing heavy: stored responses are scored again
wherever a verdict is recomputed.
"""

from typing import NamedTuple

from driftline.scoring.exact_match import exact_match
from driftline.scoring.extraction import FILTERS, INVALID, extract

__all__ = ["FILTERS", "INVALID", "Scored", "exact_match", "extract", "score"]


class Scored(NamedTuple):
    """What one filter took from a response, and whether that is the gold answer."""

    extracted: str
    right: bool


def score(response: str, target: str) -> dict[str, Scored]:
    """Score one response against gsm8k's whole `answer` field, under each of the task's filters by name."""
    extracted = {name: extract(name, response) for name in FILTERS}
    return {name: Scored(text, exact_match(text, target)) for name, text in extracted.items()}
