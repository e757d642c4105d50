"""Real repositories, made by the git that runs here."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from driftline.git import Mirror

Commit = Callable[..., str]
IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org", "GIT_COMMITTER_DATE": "2026-01-02T03:04:05+00:00",
    "GIT_CONFIG_GLOBAL": "/dev/null",
}  # fmt: skip


def run_git(folder: Path, *arguments: str) -> str:
    answer = subprocess.run(
        ["git", "-C", str(folder), *arguments],
        env=os.environ | IDENTITY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return answer.stdout.strip()


@pytest.fixture
def git() -> Callable[..., str]:
    """git(folder, *arguments) as a person would run it."""
    return run_git


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    run_git(folder, "init", "--quiet", "--initial-branch=main")
    return folder


@pytest.fixture
def commit(repository: Path) -> Commit:
    """Write files, commit them, give the SHA."""

    def write(files: dict[str, str], subject: str = "change") -> str:
        for name, content in files.items():
            path = repository / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        run_git(repository, "add", "--all")
        run_git(repository, "commit", "--quiet", "--allow-empty", "-m", subject)
        return run_git(repository, "rev-parse", "HEAD")

    return write


@pytest.fixture
def mirror(tmp_path: Path, repository: Path) -> Mirror:
    """Opened, not fetched."""
    return Mirror.open(tmp_path / "cache", str(repository))
