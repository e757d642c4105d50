"""`driftline bisect`, `bisects`, `changes` and the options of `submit` that measure more than once, against a real server."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

Driftline = Callable[..., "subprocess.CompletedProcess[str]"]


def test_a_search_is_begun_listed_and_stopped(driftline: Driftline, served: Path, repository: Path) -> None:
    begun = driftline(
        "bisect", "--repo", str(repository), "--good", "main", "--bad", "change", "--lane", "canary V1", "--no-wait",
        folder=served,
    )  # fmt: skip
    assert begun.returncode == 0, begun.stderr
    found = re.match(r"bisect ([0-9a-f-]{36})\nhttp://127\.0\.0\.1:\d+/bisects/\1\n1 commits between\n", begun.stdout)
    assert found is not None, begun.stdout
    bisect_id = found.group(1)
    (view,) = [
        each
        for each in json.loads(driftline("bisects", "--json", folder=served).stdout)
        if each["bisect_id"] == bisect_id
    ]
    assert (view["state"], len(view["steps"])) == ("running", 1)
    assert f"{bisect_id[:8]}  canary V1" in driftline("bisects", folder=served).stdout
    stopped = driftline("bisects", "--cancel", bisect_id[:8], "--reason", "seen enough", folder=served)
    assert stopped.stdout == f"bisect {bisect_id}: cancelled\n"
    assert "cancelled: seen enough (1 steps, 0 questions)" in driftline("bisects", folder=served).stdout
    assert "no bisect called 'zzzz'" in driftline("bisects", "--cancel", "zzzz", folder=served).stderr


def test_what_cannot_be_searched_is_one_line(driftline: Driftline, served: Path, repository: Path) -> None:
    refused = driftline(
        "bisect", "--repo", str(repository), "--good", "change", "--bad", "main", "--lane", "canary V1", folder=served
    )
    assert refused.returncode == 1
    assert "change is no ancestor of main" in refused.stderr
    assert refused.stderr.count("\n") == 1


def test_submit_says_what_is_measured_more_than_once(driftline: Driftline, served: Path, repository: Path) -> None:
    answer = driftline(
        "submit", "--repo", str(repository), "--head", "change", "--lane", "canary V1", "--repeat", "2", "--no-confirm",
        folder=served,
    )  # fmt: skip
    assert answer.returncode == 0, answer.stderr
    listed = json.loads(driftline("runs", "--json", folder=served).stdout)
    driftline("cancel", listed[0]["run_id"], folder=served)
    too_many = driftline("submit", "--repo", str(repository), "--head", "change", "--repeat", "99", folder=served)
    assert (too_many.returncode, "repeats" in too_many.stderr) == (1, True)


def test_changes_are_listed_and_a_decision_needs_all_of_it(driftline: Driftline, served: Path) -> None:
    assert driftline("changes", "canary V1", folder=served).stdout.startswith("no change point over ")
    half = driftline("changes", "canary V1", "--commit", "abcd", folder=served)
    assert (half.returncode, "needs all three" in half.stderr) == (1, True)
    unknown = driftline(
        "changes", "canary V1", "--commit", "abcd", "--state", "confirmed", "--why", "seen", folder=served
    )
    assert "no one change point of canary V1 at 'abcd'; there are none (unknown_change_point)" in unknown.stderr
