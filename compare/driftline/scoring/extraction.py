"""The two filters of lm-eval's gsm8k task: how an answer is taken from a response. Not whether it is right."""

import re
from types import MappingProxyType
from typing import NamedTuple

INVALID = "[invalid]"
"""What lm-eval's regex filter gives for a response in which nothing matches."""


class Filter(NamedTuple):
    pattern: re.Pattern[str]
    select: int
    """which of all matches counts: 0 the first, -1 the last"""


FILTERS = MappingProxyType(
    {
        "strict-match": Filter(re.compile(r"#### (\-?[0-9\.\,]+)"), 0),
        "flexible-extract": Filter(re.compile(r"(-?[$0-9.,]{2,})|(-?[0-9]+)"), -1),
    }
)
"""Source: lm-eval 0.4.13, tasks/gsm8k/gsm8k.yaml, `filter_list`, in its order; then `take_first`, of one response."""


def extract(name: str, response: str) -> str:
    """What the filter `name` takes from `response`, or `[invalid]`.

    Raises:
        KeyError: for a filter that gsm8k does not have.
    """
    pattern, select = FILTERS[name]
    matches = [next(group for group in match.groups() if group) for match in pattern.finditer(response)]
    return matches[select] if matches else INVALID
