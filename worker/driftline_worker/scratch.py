"""One child's folder on disk: what it is given, and the only places it may write to."""

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

LOCK = "lock"
"""Held for as long as the folder is used."""

UNBORN_SECONDS = 60.0
"""A worker locks the folder that it made within a millisecond; one that is older and has no lock was left by a kill."""

GOING = ".going-"
"""What a folder's name begins with while it is removed: a worker that is killed meanwhile leaves it without its lock."""


@dataclass(frozen=True, slots=True)
class Scratch:
    """`given` can only be read in the sandbox: code under test and the spec. `own` is the child's, and starts empty."""

    root: Path

    @property
    def given(self) -> Path:
        return self.root / "given"

    @property
    def import_dir(self) -> Path:
        return self.given / "import"

    @property
    def tree(self) -> Path:
        """Files of the commit at their own places, for tests that look for each other."""
        return self.given / "tree"

    @property
    def spec_file(self) -> Path:
        return self.given / "spec.json"

    @property
    def enough_file(self) -> Path:
        """Beside the spec, where the child can read and not write: how many questions are enough, once that is known."""
        return self.given / "enough"

    @property
    def own(self) -> Path:
        return self.root / "own"

    @property
    def working(self) -> Path:
        """Where the child starts: empty, so that nothing there is importable."""
        return self.own / "work"

    @property
    def temporary(self) -> Path:
        return self.own / "tmp"

    @property
    def shared_memory(self) -> Path:
        return self.own / "shm"

    @property
    def home(self) -> Path:
        return self.own / "home"

    def used_bytes(self) -> int:
        """What the child has written. Files that vanish meanwhile count nothing."""
        total = 0
        for folder, _, files in os.walk(self.own):
            for name in files:
                try:
                    total += os.lstat(os.path.join(folder, name)).st_blocks * 512  # noqa: PTH118 - thousands of files
                except OSError:
                    continue
        return total

    def free_bytes(self) -> int:
        """What is left on its disk, for everybody."""
        return shutil.disk_usage(self.root).free


@contextmanager
def scratch_folder(parent: Path, name: str) -> Iterator[Scratch]:
    """A new folder that goes with the block."""
    parent.mkdir(parents=True, exist_ok=True)
    scratch = Scratch(Path(mkdtemp(prefix=f"{name}-", dir=parent)))
    lock = (scratch.root / LOCK).open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        for folder in (scratch.given, scratch.working, scratch.temporary, scratch.shared_memory, scratch.home):
            folder.mkdir(parents=True)
        yield scratch
    finally:
        going = scratch.root.rename(parent / (GOING + scratch.root.name))
        lock.close()
        remove(going)


def remove_leftovers(parent: Path) -> None:
    """Remove folders whose worker was killed. Those of living workers are locked, and stay."""
    for root in parent.iterdir() if parent.is_dir() else ():
        if root.name.startswith(GOING):
            with suppress(FileNotFoundError):  # its owner lives and is faster
                remove(root)
            continue
        try:
            with (root / LOCK).open("r") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                going = root.rename(parent / (GOING + root.name))
        except FileNotFoundError:
            if _long_unlocked(root):
                remove(root)
            continue
        except OSError:
            continue
        remove(going)


def _long_unlocked(root: Path) -> bool:
    try:
        return time.time() - root.stat().st_mtime > UNBORN_SECONDS
    except FileNotFoundError:  # its worker was faster
        return False


def remove(folder: Path) -> None:
    """Remove a tree whose owner may have taken its own permissions away."""

    def allow_and_retry(function: object, path: str, _: object) -> None:
        os.chmod(Path(path).parent, 0o700)  # noqa: PTH101
        if Path(path).is_dir() and not Path(path).is_symlink():
            os.chmod(path, 0o700)  # noqa: PTH101
            shutil.rmtree(path, ignore_errors=True)
        else:
            Path(path).unlink(missing_ok=True)

    shutil.rmtree(folder, onerror=allow_and_retry)
