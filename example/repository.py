"""The example repository: this project's kernels on `main`, and one branch per patch in example/patches.

The patches are data. Nothing here, and nothing in Driftline, knows what they change or what is to be found.
"""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
PACKAGE = Path("kernels/src/mamba2_varlen")
IDENTITY = {
    "GIT_AUTHOR_NAME": "Example", "GIT_AUTHOR_EMAIL": "example@driftline.invalid",
    "GIT_COMMITTER_NAME": "Example", "GIT_COMMITTER_EMAIL": "example@driftline.invalid",
    "GIT_AUTHOR_DATE": "2026-01-01T00:00:00Z", "GIT_COMMITTER_DATE": "2026-01-01T00:00:00Z",
    "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1",
}  # fmt: skip
"""Fixed, so that the same kernels give the same commit ids, and a second `make run` finds its baselines again."""


@dataclass(frozen=True, slots=True)
class ExampleRepository:
    """A repository on disk and the branches to submit against its main."""

    path: Path
    branches: tuple[str, ...]


def make_repository(path: Path) -> ExampleRepository:
    """Write the repository anew: one commit on main, one further commit per patch.

    Raises:
        subprocess.CalledProcessError: a patch does not apply to these kernels; git's message says where.
    """
    shutil.rmtree(path, ignore_errors=True)
    shutil.copytree(HERE.parent / PACKAGE, path / PACKAGE, ignore=shutil.ignore_patterns("__pycache__"))
    _git(path, "init", "--quiet", "--initial-branch=main")
    _commit(path, "Varlen Mamba2 kernels")
    patches = sorted((HERE / "patches").glob("*.patch"))
    for patch in patches:
        _git(path, "checkout", "--quiet", "-b", patch.stem, "main")
        _git(path, "apply", str(patch))
        _commit(path, patch.with_suffix(".txt").read_text(encoding="utf-8"))
    _git(path, "checkout", "--quiet", "main")
    return ExampleRepository(path, tuple(patch.stem for patch in patches))


def _commit(path: Path, message: str) -> None:
    _git(path, "add", "--all")
    _git(path, "commit", "--quiet", "--message", message)


def _git(path: Path, *arguments: str) -> None:
    import os

    environment = {"PATH": os.environ["PATH"], "HOME": str(path)} | IDENTITY
    subprocess.run(["git", *arguments], cwd=path, env=environment, check=True)
