"""Trees of vLLM on this disk, each under a name that tells its content: made once, used by many, taken away when unused."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from driftline.git.file_lock import locked
from driftline.git.mirror_cache import CachedFolder, folder_in_use, remove_unused

from driftline_worker.scratch import remove

ENGINE = ".engine"
"""What the name of a whole tree ends with."""

MAKING = ".making-"
"""In the name of one that is not whole yet; it has no user."""

ABANDONED_SECONDS = 86400.0
"""Longer than any build may take: whoever made it is gone."""


@contextmanager
def cached_engine(cache: Path, name: str, make: Callable[[Path], None], *, patience_seconds: float) -> Iterator[Path]:
    """The tree of this name, filled in by `make` if it is not there, and kept while the block runs.

    Two who want the same wait for one of them. What `make` raises leaves nothing behind.

    Raises:
        GitError: git_timeout, if another makes it for longer than `patience_seconds`.
    """
    with folder_in_use(cache, name):
        folder = cache / f"{name}{ENGINE}"
        if not folder.is_dir():
            with locked(cache / f"{name}.lock", seconds=patience_seconds):
                if not folder.is_dir():
                    _make(cache, name, make)
        yield folder


def clean_engines(cache: Path, *, most_bytes: int, now: float, unused_since: float) -> list[CachedFolder]:
    """Take away trees as `remove_unused` does, and what killed workers left half made. Returns the whole ones that went."""
    for left in cache.glob(f"*{MAKING}*"):
        if now - left.stat().st_mtime > ABANDONED_SECONDS:
            remove(left)
    return remove_unused(cache, most_bytes=most_bytes, unused_since=unused_since, ending=ENGINE)


def _make(cache: Path, name: str, make: Callable[[Path], None]) -> None:
    """For the holder of the name's lock: what others left of it is nobody's."""
    for left in cache.glob(f"{name}{MAKING}*"):
        remove(left)
    partial = Path(mkdtemp(prefix=f"{name}{MAKING}", dir=cache))
    try:
        make(partial)
        partial.chmod(0o755)
        partial.rename(cache / f"{name}{ENGINE}")
    except BaseException:
        remove(partial)
        raise
