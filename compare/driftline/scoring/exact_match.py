"""lm-eval's `exact_match` as gsm8k configures it: strings compared after some parts of both are taken away."""

import re

IGNORED = tuple(re.compile(pattern) for pattern in (r",", r"\$", r"(?s).*#### ", r"\.$"))
"""Removed in turn from both sides. Source: lm-eval 0.4.13, tasks/gsm8k/gsm8k.yaml, `regexes_to_ignore`."""


def exact_match(extracted: str, target: str) -> bool:
    """Whether the extracted answer is the gold one. No number is parsed: `18.00` is not `18`, as in lm-eval."""
    return _bare(extracted) == _bare(target)


def _bare(text: str) -> str:
    for pattern in IGNORED:
        # lm-eval holds both sides in NumPy arrays of text, and those drop NUL at the end.
        text = pattern.sub("", text).rstrip("\0")
    return text.lower()
