"""A vLLM at a commit: the commit's Python over the compiled parts of the installed release, as one folder of links.

vLLM's own precompiled install does the same with copies. A file of the commit that equals the release's is linked to the
release's, its compiled bytecode too, so that an import costs what it costs there; what only the release has and no source
tree holds (extension modules, version files) is linked from it.
"""

import os
from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from filecmp import cmp
from pathlib import Path
from typing import Final

PACKAGE: Final = "vllm"
BUILT: Final = (".so", "_version.py")
"""What a build makes and a source tree lacks."""

BYTECODE: Final = "__pycache__"


@dataclass(frozen=True)
class Overlay:
    """`folder` goes first on the import path. `changed` are the commit's files that the release has otherwise or not at
    all, `missing` the release's that the commit has not."""

    folder: Path
    changed: tuple[str, ...]
    missing: tuple[str, ...]


def make_overlay(commit: Path, release: Path, folder: Path) -> Overlay:
    """Link the package at `commit` over the one at `release` into `folder`/vllm.

    Raises:
        OSError: a file cannot be read or linked.
    """
    ours, theirs = set(_files(commit)), set(_files(release))
    target = folder / PACKAGE
    changed = []
    for name in sorted(ours):
        same = name in theirs and cmp(commit / name, release / name, shallow=False)
        _link(release / name if same else commit / name, target / name)
        if same:
            _link_bytecode(release / name, target / name)
        else:
            changed.append(name)
    for name in theirs - ours:
        if name.endswith(BUILT):
            _link(release / name, target / name)
    missing = sorted(name for name in theirs - ours if not name.endswith(BUILT))
    return Overlay(folder, tuple(changed), tuple(missing))


def import_first(folder: Path, environment: MutableMapping[str, str] = os.environ) -> None:
    """Have Python processes to come look into the folder before all that they look into already."""
    before = [environment["PYTHONPATH"]] if environment.get("PYTHONPATH") else []
    environment["PYTHONPATH"] = os.pathsep.join([str(folder), *before])


def _files(folder: Path) -> Iterator[str]:
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != BYTECODE]
        yield from (str((Path(place) / name).relative_to(folder)) for name in files)


def _link(source: Path, place: Path) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(source)


def _link_bytecode(source: Path, place: Path) -> None:
    """Python checks bytecode against its source's time and size, which a link shares."""
    for made in (source.parent / BYTECODE).glob(f"{source.stem}.*.pyc"):
        _link(made, place.parent / BYTECODE / made.name)
