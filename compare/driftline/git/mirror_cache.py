"""A folder of mirrors, or of other folders with a name each, as a cache: who uses one says so, and the longest unused go when
they take too much or are too old."""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from driftline.git.errors import GitError
from driftline.git.names import parse_url

USED = ".used"
"""Beside each folder: locked (shared) by those who use it, written to last when its last user came."""

GONE = ".gone"
"""What a folder is called while it is removed: no user finds half of one."""

MIRROR = ".git"
"""What the name of a mirror ends with."""


@dataclass(frozen=True, slots=True)
class CachedFolder:
    """`size` in bytes on disk, `used_at` in seconds since 1970."""

    folder: Path
    size: int
    used_at: float


@contextmanager
def mirror_in_use(cache: Path, url: str) -> Iterator[None]:
    """Nobody removes the mirror of `url` while the block runs; it need not be there yet. Users do not wait for each other.

    What is no URL has no mirror: whoever opens it is told so.
    """
    try:
        address = parse_url(url).address
    except GitError:
        yield
        return
    with folder_in_use(cache, hashlib.sha256(address.encode()).hexdigest()):
        yield


@contextmanager
def folder_in_use(cache: Path, name: str) -> Iterator[None]:
    """As `mirror_in_use`, of the folder that has this name before its ending."""
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / f"{name}{USED}"
    with path.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_SH)  # waits for a removal, which only renames while it holds the lock
        os.utime(path)
        yield


def remove_unused(cache: Path, *, most_bytes: int, unused_since: float, ending: str = MIRROR) -> list[CachedFolder]:
    """Remove folders that nobody used since then (seconds since 1970), and of the others the longest unused while all
    together take more than `most_bytes`. One in use stays, however old or large. Returns what went."""
    for left in cache.glob(f"*{GONE}"):
        shutil.rmtree(left, ignore_errors=True)
    folders = sorted(_folders(cache, ending), key=lambda folder: folder.used_at)
    total, removed = sum(folder.size for folder in folders), []
    for folder in folders:
        if (folder.used_at < unused_since or total > most_bytes) and _remove(folder):
            removed.append(folder)
            total -= folder.size
    return removed


def _folders(cache: Path, ending: str) -> Iterator[CachedFolder]:
    for folder in cache.glob(f"*{ending}"):
        try:
            used = folder.with_suffix(USED)
            used_at = (used if used.exists() else folder).stat().st_mtime
        except FileNotFoundError:  # another worker on this disk was faster
            continue
        yield CachedFolder(folder, _size(folder), used_at)


def _size(folder: Path) -> int:
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += (Path(place) / name).lstat().st_blocks * 512
            except OSError:
                continue
    return total


def _remove(cached: CachedFolder) -> bool:
    """Whether it went; not if somebody uses it, or did since it was looked at."""
    path = cached.folder.with_suffix(USED)
    was_used = path.exists()
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        if was_used and path.stat().st_mtime > cached.used_at:
            return False
        gone = cached.folder.with_suffix(GONE)
        try:
            cached.folder.rename(gone)
        except FileNotFoundError:
            return False
    shutil.rmtree(gone, ignore_errors=True)
    return True
