"""Which models a repository's CI configuration asks for their accuracy: from the steps over the lists to the models. Pure.

Nothing of a CI system is imitated: a step is a line that speaks of accuracy, and files are followed by their names.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import NamedTuple

FOLDERS = (".buildkite/", ".github/")
FOLLOWED = (".buildkite/", ".github/", "tests/evals/")
"""Where the lists and scripts lie that steps name."""

STEPS = (".yaml", ".yml", ".sh")
_ACCURACY = re.compile(r"lm[-_]eval|gsm8k|\baccuracy\b|\bevals/", re.IGNORECASE)
_FILE = re.compile(r"[\w./-]+\.(?:py|sh|txt|ya?ml)\b")
_MODEL = re.compile(r"(?<![\w./-])[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(?![\w/-])")
_SOURCE_ENDINGS = (".py", ".sh", ".txt", ".yaml", ".yml", ".md", ".json", ".git")


class Mention(NamedTuple):
    """A model that a file of an accuracy test names."""

    model: str
    path: str
    line: int


def is_step_file(path: str) -> bool:
    """Whether a file may hold steps: CI configuration, but not the settings of the single tests."""
    return path.startswith(FOLDERS) and path.endswith(STEPS) and "/configs/" not in path


def is_read(path: str) -> bool:
    """Whether a file is read at all."""
    return path.startswith(FOLLOWED) and path.endswith((*STEPS, ".py", ".txt"))


def accuracy_mentions(texts: Mapping[str, str]) -> list[Mention]:
    """The models that are named in steps about accuracy, or in files which those name."""
    waiting: list[str] = []
    found: list[Mention] = []
    for path in sorted(filter(is_step_file, texts)):
        for number, line in _lines(texts[path]):
            if _ACCURACY.search(line):
                found += [Mention(model, path, number) for model in _models(line)]
                waiting += _named(line, path, texts)
    done: set[str] = set()
    while waiting:
        path = waiting.pop()
        if path not in done:
            done.add(path)
            for number, line in _lines(texts[path]):
                found += [Mention(model, path, number) for model in _models(line)]
                if path.endswith(".txt"):
                    waiting += _named(line, path, texts)
    return sorted(set(found))


def _lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their numbers, but comments."""
    return ((number, line) for number, line in enumerate(text.splitlines(), 1) if not line.lstrip().startswith("#"))


def _named(line: str, path: str, texts: Mapping[str, str]) -> list[str]:
    """The files that a line names: beside the script it starts, else beside its own file, else wherever one fits."""
    names = _FILE.findall(line)
    scripts = [found for name in names if name.endswith((".py", ".sh")) for found in _fitting(name, texts)]
    folders = {str(PurePosixPath(script).parent) for script in scripts} or {str(PurePosixPath(path).parent)}
    lists = [name for name in names if name.endswith((".txt", ".yaml", ".yml"))]
    beside = [f"{folder}/{name}" for name in lists for folder in sorted(folders) if f"{folder}/{name}" in texts]
    return scripts + (beside or [found for name in lists for found in _fitting(name, texts)])


def _fitting(name: str, texts: Iterable[str]) -> list[str]:
    tail = "/" + name.lstrip("./")
    return [path for path in texts if f"/{path}".endswith(tail) and not is_step_file(path)]


def _models(line: str) -> list[str]:
    """Words of the form owner/model."""
    return [word for word in _MODEL.findall(line) if not word.endswith(_SOURCE_ENDINGS)]
