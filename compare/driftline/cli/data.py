"""`driftline data`: puts a data set that is not shipped where its lanes look for it, after checking what it is."""

import shutil
import tomllib
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import typer

from driftline.cli import project
from driftline.cli.failure import CommandError


def data(
    task: Annotated[str, typer.Argument(help="A task of driftline.toml, e.g. gsm8k.")],
    source: Annotated[Path | None, typer.Option("--from", help="Folder with its train.jsonl and test.jsonl.")] = None,
) -> None:
    """Install a task's pinned data, or without --from say whether it is there.

    A file is taken only if its sha256 is the one in driftline.toml: another version asks other questions.

    Example:

      driftline data gsm8k --from ~/grade-school-math/grade_school_math/data
    """
    entry = _task(task)
    for part in ("train", "test"):
        target, expected = project.ROOT / entry[part], entry[f"{part}_sha256"]
        if source is not None:
            _install(source / Path(entry[part]).name, target, expected)
        typer.echo(f"{target}: {_standing(target, expected)}")


def _task(name: str) -> dict[str, str]:
    try:
        tasks = tomllib.loads(project.CONFIG.read_text(encoding="utf-8"))["tasks"]
    except (OSError, tomllib.TOMLDecodeError, KeyError) as error:
        raise CommandError(f"{project.CONFIG}: cannot be read: {error}") from error
    if name not in tasks:
        raise CommandError(f"no task {name!r} in {project.CONFIG}; there are {', '.join(tasks)}")
    found: dict[str, str] = tasks[name]
    return found


def _install(given: Path, target: Path, expected: str) -> None:
    if not given.is_file():
        raise CommandError(f"{given} does not exist; --from names the folder that holds it")
    found = _sum(given)
    if found != expected:
        raise CommandError(f"{given} has sha256 {found}, {project.CONFIG.name} wants {expected}: it is another version")
    if given.resolve() == target.resolve():
        return
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(given, target)
    except OSError as error:
        raise CommandError(f"{target}: {error.strerror}") from error


def _standing(target: Path, expected: str) -> str:
    if not target.is_file():
        return "missing; give the folder that holds it with --from"
    return "in place" if _sum(target) == expected else "another version; install the right one with --from"


def _sum(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()
