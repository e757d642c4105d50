"""`driftline data`: puts a data set that is not shipped where its lanes look for it, after checking what it is."""

import os
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from driftline.cli import project
from driftline.cli.failure import CommandError

HELP = """Put a task's pinned data in its place, or see whether it is there.

A file is taken only if its sha256 is the one in driftline.toml: another version asks other questions.

Examples:

  driftline data fetch gsm8k

  driftline data fetch gsm8k --file train.jsonl --file test.jsonl      without a network

  driftline data list
"""

app = typer.Typer(help=HELP, no_args_is_help=True, add_completion=False, rich_markup_mode=None)

PARTS = ("train", "test")


@dataclass(frozen=True, slots=True)
class _Part:
    """A file of a task: where it belongs, its sum, and where it can be had, if anybody said so."""

    target: Path
    sha256: str
    url: str | None

    @property
    def standing(self) -> str:
        from driftline.pinned_file import sha256_of

        if not self.target.is_file():
            return "missing"
        return "in place" if sha256_of(self.target) == self.sha256 else "another version"


@app.command("list")
def list_() -> None:
    """Say of each task's files whether they are in place.

    Example:

      driftline data list
    """
    for name in _document()["tasks"]:
        for part in _parts(name):
            typer.echo(f"{name}: {part.target}: {part.standing}")


@app.command("fetch")
def fetch(
    task: Annotated[str, typer.Argument(help="A task of driftline.toml, e.g. gsm8k.")],
    file: Annotated[
        list[Path] | None, typer.Option(help="Take it from here: a file, given once for each, or a folder with all.")
    ] = None,
    url: Annotated[
        str | None, typer.Option(help="A folder of files of these names, instead of driftline.toml's.")
    ] = None,
) -> None:
    """Get what is missing of a task's pinned data, over the network or from files that are here.

    A download that broke off is gone on from; nothing takes a file's place before its sum is right.

    Example:

      driftline data fetch gsm8k --file ~/grade-school-math/grade_school_math/data
    """
    from driftline.pinned_file import NotFetched

    if file and url:
        raise CommandError("--file and --url exclude each other: the data comes from here or from there")
    for part in _parts(task):
        try:
            if file:
                _from_files(file, part)
            elif part.standing != "in place":
                _from_network(part, task, url)
        except NotFetched as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(f"{error.filename or part.target}: {error.strerror}") from error
        typer.echo(f"{part.target}: in place")


def _from_files(given: Sequence[Path], part: _Part) -> None:
    """From the one file that has the part's name, wherever it lies."""
    from driftline.pinned_file import copy_pinned

    name = part.target.name
    places = [place / name if place.is_dir() else place for place in given]
    found = next((place for place in places if place.name == name and place.is_file()), None)
    if found is None:
        said = ", ".join(map(str, given))
        raise CommandError(f"{name} does not exist in {said}; --file names it, or the folder that holds it")
    copy_pinned(found, part.target, part.sha256)


def _from_network(part: _Part, task: str, base: str | None) -> None:
    from driftline.pinned_file import fetch_pinned

    url = part.url if base is None else f"{base.rstrip('/')}/{part.target.name}"
    if url is None:
        raise CommandError(f"{_config()} names no source of {task}; give --url or --file")
    fetch_pinned(url, part.target, part.sha256)


def _config() -> Path:
    """As the service is told."""
    return Path(os.environ.get("DRIFTLINE_CONFIG_PATH") or project.CONFIG)


def _document() -> dict[str, Any]:
    """driftline.toml, once it was understood as a whole."""
    from driftline.lane_file import ConfigurationError, read_lanes  # pydantic: half a second that --help need not wait

    try:
        read_lanes(_config())
    except ConfigurationError as error:
        raise CommandError(str(error)) from error
    return tomllib.loads(_config().read_text(encoding="utf-8"))


def _parts(task: str) -> list[_Part]:
    document = _document()
    tasks, sources = document["tasks"], document.get("sources", {})
    if task not in tasks:
        raise CommandError(f"no task {task!r} in {_config()}; there are {', '.join(tasks)}")
    entry, urls = tasks[task], sources.get(task, {})
    root = Path(os.environ.get("DRIFTLINE_ASSETS_ROOT") or project.ROOT)
    return [_Part(root / entry[part], entry[f"{part}_sha256"], urls.get(part)) for part in PARTS]
