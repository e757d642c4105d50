"""A reconciler's sign of life, as its container's health check sees it."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from driftline_service.pulse import STILL_SECONDS, touching
from driftline_service.runs.reconciler import Reconciler
from scripted.world import Broker, Clock
from sqlalchemy import Engine, create_engine


def check(file: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-P", "-m", "driftline_service.pulse", str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("away", [False, True], ids=["at work", "without a database"])
def test_a_reconciler_touches_its_file_as_it_goes_round(core_engine: Engine, tmp_path: Path, away: bool) -> None:
    file, stop = tmp_path / "pulse", threading.Event()
    engine = create_engine("postgresql+psycopg://postgres@127.0.0.1:9/postgres") if away else core_engine
    reconciler = Reconciler(engine, Broker(), Clock())
    thread = threading.Thread(target=reconciler.run_forever, args=(stop, touching(file)))
    assert check(file).returncode == 1
    thread.start()
    deadline = time.monotonic() + 20
    while not file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.utime(file, (0, 0))
    while file.stat().st_mtime == 0:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    stop.set()
    thread.join(20)
    assert check(file).returncode == 0


def test_one_that_hangs_is_told(tmp_path: Path) -> None:
    file = tmp_path / "pulse"
    touching(file)()
    os.utime(file, (time.time() - STILL_SECONDS - 5,) * 2)
    found = check(file)
    assert found.returncode == 1
    assert "was not touched for 12" in found.stderr


def test_a_disk_that_takes_no_file_stops_nothing(tmp_path: Path) -> None:
    touching(tmp_path / "no" / "folder")()
    touching(None)()
