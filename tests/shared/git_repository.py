"""Real repositories for the tests of every package, made by the git that runs here, whatever its user has configured."""

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

IDENTITY = {
    "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org", "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.org", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1",
}  # fmt: skip


def git(folder: Path, *words: str) -> str:
    """What git says, without the space around it.

    Raises:
        AssertionError: git refuses; the message is git's own.
    """
    command = ["git", "-C", str(folder), *words]
    answer = subprocess.run(command, env=os.environ | IDENTITY, check=False, capture_output=True, text=True)
    assert answer.returncode == 0, f"{' '.join(command)}: {answer.stderr}"
    return answer.stdout.strip()


def start(folder: Path) -> Path:
    """An empty repository on branch main."""
    folder.mkdir(parents=True, exist_ok=True)
    git(folder, "init", "--quiet", "--initial-branch=main")
    return folder


def commit(folder: Path, subject: str, files: Mapping[str, str | None] | None = None) -> str:
    """Write `files` (None: remove it), commit all that differs, give the SHA; without a difference an empty commit."""
    for name, content in (files or {}).items():
        path = folder / name
        if content is None:
            path.unlink()
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--allow-empty", "-m", subject)
    return git(folder, "rev-parse", "HEAD")


def branch(folder: Path, name: str, files: Mapping[str, str | None], *, onto: str = "main") -> str:
    """Make or move a branch to `onto` with a commit "Change NAME" of `files` on top, give its SHA. It stays checked out."""
    git(folder, "checkout", "--quiet", "-B", name, onto)
    return commit(folder, f"Change {name}", files)
