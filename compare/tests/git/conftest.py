"""Real repositories, made by the git that runs here."""

from collections.abc import Callable
from pathlib import Path

import git_repository
import pytest
from driftline.git import Mirror

Commit = Callable[..., str]


@pytest.fixture
def git() -> Callable[..., str]:
    """git(folder, *arguments) as a person would run it."""
    return git_repository.git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return git_repository.start(tmp_path / "repository")


@pytest.fixture
def commit(repository: Path) -> Commit:
    """Write files, commit them, give the SHA."""

    def write(files: dict[str, str], subject: str = "change") -> str:
        return git_repository.commit(repository, subject, files)

    return write


@pytest.fixture
def mirror(tmp_path: Path, repository: Path) -> Mirror:
    """Opened, not fetched."""
    return Mirror.open(tmp_path / "cache", str(repository))
