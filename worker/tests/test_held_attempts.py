"""Attempts of a worker that was killed: given back by the next one, and never those of one that lives."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import pytest
from driftline.contracts.worker_api import Directive, Finish
from driftline_worker.client import Gone, ServiceClient, Unreachable
from driftline_worker.held_attempts import HeldAttempts

HOLD = """
import sys, time
from pathlib import Path
from uuid import UUID
from driftline_worker.held_attempts import HeldAttempts
with HeldAttempts(Path(sys.argv[1])).holding(UUID(sys.argv[2]), "attempt-token"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def killed(tmp_path: Path) -> UUID:
    """The attempt that a process held when it was killed."""
    attempt = uuid4()
    with subprocess.Popen(
        [sys.executable, "-P", "-c", HOLD, str(tmp_path), str(attempt)], stdout=subprocess.PIPE
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == b"held\n"
        assert HeldAttempts(tmp_path).give_back(not_to_be_told) == 0, "it lives"
        owner.send_signal(signal.SIGKILL)
    return attempt


def not_to_be_told(attempt: UUID, token: str, finish: Finish) -> Directive:
    raise AssertionError(f"attempt {attempt} was given back")


def test_what_a_killed_worker_held_is_given_back_once(
    killed: UUID, tmp_path: Path, service: Any, service_url: str
) -> None:
    client = ServiceClient(service_url, retry_seconds=3, hurry=threading.Event())
    held = HeldAttempts(tmp_path)
    assert [held.give_back(client.finish), held.give_back(client.finish)] == [1, 0]
    client.close()
    ((door, token, end),) = service.calls
    assert (door, token) == ("finish", "attempt-token")
    assert (end["outcome"], end["failure_kind"], end["reason"]) == ("failed", "transient", "worker_died")


@pytest.mark.parametrize(("answer", "noted"), [(Gone("lease over"), 0), (Unreachable("away"), 1)])
def test_only_a_service_that_answers_makes_it_forgotten(
    killed: UUID, tmp_path: Path, answer: Exception, noted: int
) -> None:
    def tell(attempt: UUID, token: str, finish: Finish) -> Directive:
        assert attempt == killed
        raise answer

    assert HeldAttempts(tmp_path).give_back(tell) == 0
    assert len(list(tmp_path.iterdir())) == noted


def test_what_a_worker_ended_itself_is_not_noted(tmp_path: Path) -> None:
    held = HeldAttempts(tmp_path / "held")
    with held.holding(uuid4(), "t"):
        (note,) = held.folder.iterdir()
        assert (note.stat().st_mode & 0o777, held.folder.stat().st_mode & 0o777) == (0o600, 0o700)
    assert list(held.folder.iterdir()) == []


def test_a_note_that_was_never_whole_is_removed(tmp_path: Path) -> None:
    (tmp_path / "torn.new").write_text('{"attempt')
    assert HeldAttempts(tmp_path).give_back(not_to_be_told) == 0
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_takes_no_note_does_not_keep_a_job_from_being_done(tmp_path: Path) -> None:
    (tmp_path / "held").write_text("no folder")
    with HeldAttempts(tmp_path / "held").holding(uuid4(), "t"):
        assert os.listdir(tmp_path) == ["held"]  # noqa: PTH208 - one name
