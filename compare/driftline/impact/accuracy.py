"""Whether a model that CI names is one of an architecture: by vLLM's own examples, else by its name. Pure."""

import re
from collections.abc import Iterable

from driftline.contracts.impact import AccuracyTest
from driftline.impact.ci import Mention

SHORTEST_STEM = 6
"""Letters of a family's name that are enough to be no accident: 'zamba2', 'falcon', 'granite'."""


def tests_of(model: str, examples: Iterable[str], mentions: Iterable[Mention]) -> list[AccuracyTest]:
    """The accuracy tests of one model, the sure ones first. `model` is its module, `examples` its known hub ids."""
    known = {example.lower() for example in examples}
    whole, stem = _plain(model), _stem(model)
    found = []
    for mention in mentions:
        name = _plain(mention.model.partition("/")[2])
        sure = mention.model.lower() in known or whole in name
        if sure or (len(stem) >= SHORTEST_STEM and stem in name):
            found.append(AccuracyTest(model=mention.model, path=mention.path, line=mention.line, sure=sure))
    return sorted(found, key=lambda test: (not test.sure, test.path, test.line))


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _stem(model: str) -> str:
    """nemotron of nemotron_h, granite of granitemoehybrid."""
    first = re.split(r"[_.-]", model.lower())[0]
    return re.split(r"moe|hybrid", first)[0] or first
