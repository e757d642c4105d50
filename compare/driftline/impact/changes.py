"""What of a Python file changed: the definitions whose code differs, not its lines. Pure."""

from typing import NamedTuple

from driftline.impact.module import BODY, Module, parse_module


class Changed(NamedTuple):
    definitions: list[str]
    lines: list[int]
    """where those that head has begin"""


def changed_definitions(name: str, base: str | None, head: str | None, *, package: bool) -> Changed:
    """What code, or what import, differs between two texts of one module; None is a text that is not there.

    A statement that defines nothing may change everything, so then all names are told.

    Raises:
        Unreadable: a text is no Python.
    """
    before, after = (None if text is None else parse_module(name, text, package=package) for text in (base, head))
    told = _facts(before), _facts(after)
    differing = {bound for bound in told[0].keys() | told[1].keys() if told[0].get(bound) != told[1].get(bound)}
    if BODY in differing:
        differing = told[0].keys() | told[1].keys()
    names = sorted(differing - {BODY})
    lines = {} if after is None else after.lines
    return Changed(names, sorted({lines[each] for each in names if each in lines}))


def _facts(module: Module | None) -> dict[str, object]:
    """Definition -> its code's digest; of an imported name, where it comes from."""
    if module is None:
        return {}
    return {bound: module.digests.get(bound, uses) for bound, uses in module.uses.items()}
