"""Clean-up by age and size, and never of what a job uses."""

import fcntl
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from driftline.git.mirror_cache import USED, mirror_in_use, remove_unused
from driftline_worker import scratch
from driftline_worker.housekeeping import DAY_SECONDS, clean, keep_clean
from driftline_worker.scratch import scratch_folder
from driftline_worker.settings import WorkerSettings

NOW = time.time()
MEGABYTE = 1 << 20


def settings(folder: Path, **changes: Any) -> WorkerSettings:
    usual: dict[str, Any] = {
        "data_dir": folder,
        "service_url": "http://127.0.0.1:9",
        "broker_url": "redis://127.0.0.1:9/0",
    }
    return WorkerSettings(**(usual | changes))


def mirror(cache: Path, name: str, *, days: float, size: int = MEGABYTE) -> Path:
    """A mirror as big and as long unused as said."""
    url = f"https://example.org/{name}.git"
    with mirror_in_use(cache, url):
        pass
    used = max(cache.glob(f"*{USED}"), key=lambda path: path.stat().st_mtime_ns)
    folder = used.with_suffix(".git")
    folder.mkdir()
    (folder / "pack").write_bytes(b"x" * size)
    os.utime(used, (NOW - days * DAY_SECONDS,) * 2)
    return folder


def test_mirrors_unused_for_long_go(tmp_path: Path) -> None:
    cache = tmp_path / "mirrors"
    old, new = mirror(cache, "old", days=31), mirror(cache, "new", days=29)
    clean(settings(tmp_path), NOW)
    assert (old.exists(), new.exists()) == (False, True)


def test_of_too_many_the_longest_unused_go(tmp_path: Path) -> None:
    cache = tmp_path / "mirrors"
    folders = [mirror(cache, str(days), days=days) for days in (4, 2, 3, 1)]
    clean(settings(tmp_path, cache_bytes=2 * MEGABYTE + MEGABYTE // 2), NOW)
    assert [folder.exists() for folder in folders] == [False, True, False, True]


def test_one_in_use_stays_and_goes_afterwards(tmp_path: Path) -> None:
    cache = tmp_path / "mirrors"
    folder = mirror(cache, "used", days=99)
    with mirror_in_use(cache, "https://example.org/used.git"):
        os.utime(folder.with_suffix(USED), (0, 0))  # however old it looks
        assert remove_unused(cache, most_bytes=0, unused_since=NOW) == []
        assert folder.exists()
    os.utime(folder.with_suffix(USED), (0, 0))
    assert [gone.folder for gone in remove_unused(cache, most_bytes=0, unused_since=NOW)] == [folder]
    assert not folder.exists()


def test_half_a_removal_is_finished(tmp_path: Path) -> None:
    cache = tmp_path / "mirrors"
    left = cache / "abc.gone"
    left.mkdir(parents=True)
    clean(settings(tmp_path), NOW)
    assert not left.exists()


def test_a_cache_of_others_is_left_alone(tmp_path: Path) -> None:
    folder = mirror(tmp_path / "mirrors", "old", days=999)
    clean(settings(tmp_path, cache_bytes=0), NOW)
    assert folder.exists()


def test_scratch_of_a_killed_worker_goes_and_of_a_living_one_stays(tmp_path: Path) -> None:
    parent = tmp_path / "scratch"
    with scratch_folder(parent, "evaluate") as used:
        dead = parent / "evaluate-dead"
        dead.mkdir()
        (dead / scratch.LOCK).touch()
        unborn, lost = parent / "evaluate-unborn", parent / "evaluate-lost"
        unborn.mkdir()
        lost.mkdir()
        os.utime(lost, (NOW - 2 * scratch.UNBORN_SECONDS,) * 2)
        clean(settings(tmp_path), NOW)
        assert used.own.exists()
        assert not dead.exists()
        assert unborn.exists()  # its worker is just about to lock it
        assert not lost.exists()


def test_it_cleans_beside_the_jobs_until_it_is_stopped(tmp_path: Path) -> None:
    stop = threading.Event()
    thread = keep_clean(settings(tmp_path, clean_seconds=1), stop)
    folder = mirror(tmp_path / "mirrors", "old", days=31)
    deadline = time.monotonic() + 20
    while folder.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not folder.exists()
    stop.set()
    thread.join(5)
    assert not thread.is_alive()


@pytest.fixture(autouse=True)
def _no_lock_is_left(tmp_path: Path) -> Any:
    yield
    for path in (tmp_path / "mirrors").glob(f"*{USED}"):
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
