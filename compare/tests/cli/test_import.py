"""Reports from the command line against a real server: figures, the shipped reference, decisions, history."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from driftline.cli.app import run

Driftline = Callable[..., "subprocess.CompletedProcess[str]"]


def figures(folder: Path, **changes: Any) -> Path:
    point = {"lane": "canary V0", "commit": "0123456", "questions": 300,
             "scores": [{"filter": "strict-match", "value": 0.5, "stderr": 0.0289}]} | changes  # fmt: skip
    path = folder / "figures.json"
    path.write_text(json.dumps({"format": "driftline-figures-1", "points": [point]}))
    return path


def test_the_reference_is_imported_once(driftline: Driftline, served: Path) -> None:
    answer = driftline("import", "--reference", "--by", "Ada", folder=served)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.count("\n") == 10
    assert "2b6b1d7809 on plamo2 V1, strict-match 0.5861, flexible-extract 0.5906" in answer.stdout
    again = json.loads(driftline("import", "--reference", "--json", folder=served).stdout)
    assert {view["import_id"] in answer.stdout for view in again} == {True}
    assert {view["reported_by"] for view in again} == {"Ada"}
    history = json.loads(driftline("history", "granite-4.0-tiny V0", "--json", folder=served).stdout)["points"]
    assert [(point["source"], point["scores"][0]["value"], point["scores"][1]["value"]) for point in history] == [
        ("reported", 0.5845, 0.6042), ("reported", 0.5785, 0.6005),
    ]  # fmt: skip
    table = driftline("history", "granite-4.0-tiny V0", folder=served, COLUMNS="200").stdout
    assert "strict-match 0.5845 ± 0.0136" in table
    assert "by Ada" in table
    assert "figures only" in table


def test_figures_are_imported_listed_and_withdrawn(driftline: Driftline, served: Path, tmp_path: Path) -> None:
    answer = driftline("import", "--results-only", str(figures(tmp_path)), "--note", "a trial", folder=served)
    assert answer.returncode == 0, answer.stderr
    listed = json.loads(driftline("imports", "--lane", "canary V0", "--json", folder=served).stdout)
    assert [(view["commit"], view["note"], view["kind"]) for view in listed] == [("0123456", "a trial", "figures")]
    short = listed[0]["import_id"][:8]
    assert short in driftline("imports", folder=served, COLUMNS="200").stdout
    refused = driftline("baseline", "promote", short, "--reason", "I trust it", folder=served)
    assert (refused.returncode, "(no_samples)" in refused.stderr, refused.stderr.count("\n")) == (1, True, 1)
    assert "no import is a baseline" in driftline("baseline", "list", folder=served).stdout
    refused = driftline("baseline", "demote", short, "--reason", "x", folder=served)
    assert "(not_promoted)" in refused.stderr
    assert driftline("withdraw", short, "--reason", "typed wrongly", folder=served).returncode == 0
    assert "withdrawn" in driftline("imports", folder=served, COLUMNS="200").stdout
    again = driftline("import", "--results-only", str(figures(tmp_path)), "--json", folder=served)
    assert json.loads(again.stdout)[0]["import_id"] != listed[0]["import_id"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "one of the three"),
        (["two", "--reference"], "one of the three"),
        (["two"], "--commit and --lane"),
        (["--reference", "--lane", "canary V0"], "leave the options out"),
        (["nowhere", "--commit", "0" * 40, "--lane", "canary V0"], "nowhere: no such folder"),
        (["empty", "--commit", "0" * 40, "--lane", "canary V0"], "holds no results_*.json"),
        (
            ["two", "--commit", "0" * 40, "--lane", "canary V0"],
            "holds 2 evaluations; name one, e.g. two/results_b.json",
        ),
        (["bare", "--commit", "0" * 40, "--lane", "canary V0"], "--log_samples"),
        (["--results-only", "nowhere.json"], "nowhere.json: No such file"),
        (["--results-only", "broken.json"], "broken.json is no JSON"),
        (["--results-only", "other.json"], "other.json: format: "),
        (["--results-only", "nan.json"], "points.0.scores.0.value"),
    ],
)
def test_a_mistake_is_one_line(
    served: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    arguments: list[str], words: str,
) -> None:  # fmt: skip
    """Through the command line's own door, without a process for each."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRIFTLINE_DATA_DIR", str(served / ".driftline"))
    for name in ("two/results_a.json", "two/results_b.json", "bare/results_2026-12-02T05-30-00.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    (tmp_path / "broken.json").write_text('{"format"')
    (tmp_path / "other.json").write_text('{"format": "2", "points": []}')
    figures(tmp_path, scores=[{"filter": "strict-match", "value": float("nan")}]).rename(tmp_path / "nan.json")
    (tmp_path / "empty").mkdir()
    assert run(["import", *arguments]) == 1
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


def test_an_import_that_does_not_exist_is_told(driftline: Driftline, served: Path) -> None:
    for command in (["baseline", "promote"], ["baseline", "demote"], ["withdraw"]):
        answer = driftline(*command, "zzzz", "--reason", "x", folder=served)
        assert (answer.returncode, "no import called 'zzzz'" in answer.stderr) == (1, True), command
    unknown = driftline("history", "canary V9", folder=served)
    assert "there is no lane 'canary V9'" in unknown.stderr
