"""Locks between processes: ours, held on a file, which goes when its holder does; and git's, which may stay behind."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from driftline.git.errors import GitError

PAUSE_SECONDS = 0.05

LEFT_SECONDS = 60.0
"""git holds a lock file for milliseconds, while it writes; an older one was left by a git that was killed."""


@contextmanager
def locked(path: Path, *, seconds: float) -> Iterator[None]:
    """Hold the lock for the length of the block.

    Raises:
        GitError: git_timeout, if another process holds it for longer than `seconds`.
    """
    deadline = time.monotonic() + seconds
    with path.open("a") as file:
        while not _taken(file.fileno()):
            if time.monotonic() > deadline:
                raise GitError(
                    "git_timeout", f"{path.name} was held by another fetch for {seconds:.0f} s; try again later"
                )
            time.sleep(PAUSE_SECONDS)
        yield


def remove_left_locks(repository: Path) -> None:
    """Take away what a killed git left in a bare repository, and what would refuse every later fetch.

    For the holder of the repository's own lock.
    """
    for found in (*repository.glob("*.lock"), *(repository / "refs").rglob("*.lock")):
        with suppress(FileNotFoundError):
            if time.time() - found.stat().st_mtime > LEFT_SECONDS:
                found.unlink()


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
