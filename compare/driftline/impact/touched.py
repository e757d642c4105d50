"""The changed Python files of a package, each with the definitions whose code differs. Pure."""

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

from driftline.contracts.impact import Touched
from driftline.impact.changes import changed_definitions
from driftline.impact.graph import INIT, module_name
from driftline.impact.module import Unreadable


class TouchedFiles(NamedTuple):
    """`unread` are changed files of which nobody can tell what differs."""

    files: list[Touched]
    definitions: set[str]
    """dotted"""
    unread: list[str]


def touched_files(
    paths: Sequence[str], base: Mapping[str, str], head: Mapping[str, str], *, root: str = ""
) -> TouchedFiles:
    """What differs in the files `paths`; a file that one side lacks is new or deleted there."""
    found = TouchedFiles([], set(), [])
    for path in sorted(paths):
        name = module_name(path, root)
        try:
            changed = changed_definitions(name, base.get(path), head.get(path), package=path.endswith(INIT))
        except Unreadable:
            found.unread.append(path)
            continue
        found.files.append(
            Touched(
                path=path,
                operator=PurePosixPath(path).stem,
                definitions=changed.definitions,
                lines=changed.lines,
                deleted=path not in head,
            )
        )
        found.definitions.update(f"{name}.{each}" for each in changed.definitions)
    return found
