"""A lock between processes, held on a file. It goes when its holder does."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from driftline.git.errors import GitError

PAUSE_SECONDS = 0.05


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


def _taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
