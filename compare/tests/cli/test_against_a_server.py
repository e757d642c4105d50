"""Every client command against a real server: submit, list, watch, report, cancel, lanes."""

import json
import re
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

Driftline = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def run_id(driftline: Driftline, served: Path, repository: Path) -> str:
    answer = driftline("submit", "--repo", str(repository), "--head", "change", folder=served)
    assert answer.returncode == 0, answer.stderr
    found = re.match(r"run ([0-9a-f-]{36})\nhttp://127\.0\.0\.1:\d+/runs/\1\n", answer.stdout)
    assert found is not None, answer.stdout
    return found.group(1)


def test_a_run_is_listed_and_named_in_short(driftline: Driftline, served: Path, run_id: str) -> None:
    listed = json.loads(driftline("runs", "--json", folder=served).stdout)
    assert listed[0]["run_id"] == run_id
    assert run_id[:8] in driftline("runs", folder=served).stdout
    for name in (run_id, run_id[:8], "latest"):
        early = driftline("report", name, folder=served)
        assert early.returncode == 1
        assert f"run {run_id} is " in early.stderr
        assert "(not_done)" in early.stderr
    assert "no run called 'zzzz'" in driftline("report", "zzzz", folder=served).stderr


def test_watching_follows_a_run_to_its_end(driftline: Driftline, served: Path, repository: Path) -> None:
    answers: list[subprocess.CompletedProcess[str]] = []
    command = (
        "submit",
        "--repo",
        ".",
        "--head",
        "change",
        "--lane",
        "canary V1",
        "--questions",
        "20",
        "--name",
        "watched",
        "--watch",
    )
    environment = {"DRIFTLINE_DATA_DIR": str(served / ".driftline")}
    watching = threading.Thread(target=lambda: answers.append(driftline(*command, folder=repository, **environment)))
    watching.start()
    deadline = time.monotonic() + 30
    while '"watched"' not in (listed := driftline("runs", "--json", folder=served).stdout):
        assert time.monotonic() < deadline, listed
    run_id = next(run["run_id"] for run in json.loads(listed) if run["name"] == "watched")
    cancelled = driftline("cancel", run_id, "--reason", "seen enough", folder=served)
    assert cancelled.stdout == f"run {run_id}: cancelled\n"
    watching.join(60)
    assert answers[0].returncode == 3
    assert "seen enough" in answers[0].stderr
    assert f"driftline: run {run_id} is cancelled" in answers[0].stderr
    again = driftline("cancel", run_id, folder=served)
    assert (again.returncode, "(already_finished)" in again.stderr) == (1, True)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (["--head", "deadbeef"], "(unknown_commit)"),
        (["--head", "change", "--lane", "canary V9"], "there is no lane 'canary V9'; there are 'canary V0'"),
        (["--head", "change", "--measure-noise", "--base", "main"], "leave --base out"),
        (["--head", "change", "--token", "wrong"], "(forbidden)"),
        (["--head", "change", "--questions", "0"], "--questions"),
        (["--head", "change", "--margin", "3"], "(malformed)"),
    ],
)
def test_a_refused_run_is_one_line(
    driftline: Driftline, served: Path, repository: Path, more: list[str], words: str
) -> None:
    answer = driftline("submit", "--repo", str(repository), *more, folder=served)
    assert answer.returncode == 1
    assert words in answer.stderr
    assert answer.stderr.count("\n") == 1


def test_lanes_are_listed(driftline: Driftline, served: Path) -> None:
    assert "granite-4.0-tiny V1" in driftline("lanes", folder=served, COLUMNS="200").stdout
    lanes = json.loads(driftline("lanes", "--json", folder=served).stdout)
    assert [entry["lane"]["name"] for entry in lanes if entry["default"]] == ["canary V0", "canary V1"]


def test_a_second_serve_names_the_first(driftline: Driftline, served: Path) -> None:
    answer = driftline("serve", "--port", "0", "--no-worker", folder=served)
    assert answer.returncode == 1
    assert re.search(r"is in use by pid \d+ at http://127", answer.stderr)
