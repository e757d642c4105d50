"""lm-eval's own files (twelve questions of the canary, lm-eval 0.4.13) from the command line: imported, scored again."""

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from driftline.cli.app import run
from driftline.cli.failure import CommandError
from driftline.cli.rescored_folder import rescored_folder

Driftline = Callable[..., "subprocess.CompletedProcess[str]"]

DATA = Path(__file__).parents[3] / "service" / "tests" / "imports" / "data"
COMMIT = "5" * 40


@pytest.fixture
def evaluation(tmp_path: Path) -> Path:
    """A folder as lm-eval leaves it, of this test's own."""
    folder = tmp_path / "results"
    shutil.copytree(DATA, folder / "canary__model")
    return folder


def samples_file(folder: Path) -> Path:
    return next(folder.rglob("samples_*.jsonl"))


def change(folder: Path, what: Callable[[dict[str, Any]], object]) -> None:
    """Change every line of the samples."""
    path = samples_file(folder)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        what(line)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


def configure(folder: Path, what: Callable[[dict[str, Any]], object]) -> None:
    """Change the task's configuration in the results."""
    path = next(folder.rglob("results_*.json"))
    table = json.loads(path.read_text(encoding="utf-8"))
    what(table["configs"]["gsm8k_canary"])
    path.write_text(json.dumps(table), encoding="utf-8")


def test_a_folder_is_imported_once_and_shown(driftline: Driftline, served: Path, evaluation: Path) -> None:
    about = [
        "--commit",
        COMMIT,
        "--lane",
        "canary V0",
        "--repo",
        "https://example.org/kernels.git",
        "--note",
        "by hand",
    ]
    answer = driftline("import", str(evaluation), *about, "--by", "Ada", folder=served)
    assert answer.returncode == 0, answer.stderr
    assert "5555555555 on canary V0, strict-match 0.9167, flexible-extract 0.9167" in answer.stdout
    (view,) = json.loads(driftline("import", str(evaluation), *about, "--json", folder=served).stdout)
    assert view["import_id"] in answer.stdout
    assert (view["reported_by"], view["note"], view["baseline"]) == ("Ada", "by hand", None)
    points = json.loads(driftline("history", "canary V0", "--json", folder=served).stdout)["points"]
    assert COMMIT in [point["commit"] for point in points if point["has_samples"]]
    same = driftline("rescore", "--import", view["import_id"][:8], folder=served)
    assert same.returncode == 0, same.stderr
    assert "strict-match: 12 questions, stored 0.9167, rescored 0.9167: all the same" in same.stdout
    refused = driftline("baseline", "promote", "latest", "--reason", "x", "--environment", "e", folder=served)
    assert "(questions_missing)" in refused.stderr or "(no_samples)" in refused.stderr


def test_a_cut_file_is_refused_by_the_server(driftline: Driftline, served: Path, evaluation: Path) -> None:
    path = samples_file(evaluation)
    path.write_text("".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[:20]), encoding="utf-8")
    answer = driftline("import", str(evaluation), "--commit", "6" * 40, "--lane", "canary V0", folder=served)
    assert (answer.returncode, answer.stderr.count("\n")) == (1, 1)
    assert "20 lines for 12 questions × 2 filters" in answer.stderr
    assert "(line_count)" in answer.stderr
    offline = driftline("rescore", str(evaluation), folder=served)
    assert offline.returncode == 1
    assert "20 lines for 12 questions × 2 filters" in offline.stderr


def test_a_folder_is_scored_again_without_a_server(driftline: Driftline, evaluation: Path, tmp_path: Path) -> None:
    before = {path: path.read_bytes() for path in evaluation.rglob("*") if path.is_file()}
    answer = driftline("rescore", str(evaluation), folder=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.splitlines() == [
        "gsm8k_canary",
        "  strict-match: 12 questions, stored 0.9167, rescored 0.9167: all the same",
        "  flexible-extract: 12 questions, stored 0.9167, rescored 0.9167: all the same",
    ]
    assert {path: path.read_bytes() for path in evaluation.rglob("*") if path.is_file()} == before


def test_every_differing_question_is_named(driftline: Driftline, evaluation: Path, tmp_path: Path) -> None:
    """Two scores were written down wrong: one in each direction."""

    def edit(line: dict[str, Any]) -> None:
        if line["filter"] == "flexible-extract" and line["doc_id"] in (2, 7):
            line["exact_match"] = 1.0 - line["exact_match"]

    change(evaluation, edit)
    answer = driftline("rescore", str(evaluation), "--json", folder=tmp_path)
    assert answer.returncode == 2, answer.stderr
    report = json.loads(answer.stdout)
    found = report["evaluations"][0]["differences"]
    assert [(each["doc_id"], each["filter"], each["stored"] + each["rescored"]) for each in found] == [
        (2, "flexible-extract", 1.0), (7, "flexible-extract", 1.0),
    ]  # fmt: skip
    text = driftline("rescore", str(evaluation), folder=tmp_path)
    assert text.returncode == 2
    assert "question 7, flexible-extract: stored 0, rescored 1, took " in text.stdout


def test_responses_that_changed_are_found_too(driftline: Driftline, evaluation: Path, tmp_path: Path) -> None:
    change(evaluation, lambda line: line.update(resps=[["no answer at all"]]))
    answer = driftline("rescore", str(evaluation), "--json", folder=tmp_path)
    assert answer.returncode == 2
    (evaluated,) = json.loads(answer.stdout)["evaluations"]
    assert [each["rescored_mean"] for each in evaluated["filters"]] == [0.0, 0.0]
    assert {each["extracted"] for each in evaluated["differences"]} == {"[invalid]"}
    assert len(evaluated["differences"]) == 22, "the twelfth was wrong already"


def test_a_filter_of_another_task_is_named_and_not_guessed_at(
    driftline: Driftline, evaluation: Path, tmp_path: Path
) -> None:
    configure(evaluation, lambda task: task["filter_list"][0]["filter"][0].update(regex_pattern="The answer is (.*)"))
    answer = driftline("rescore", str(evaluation), folder=tmp_path)
    assert answer.returncode == 0, answer.stderr
    assert "strict-match (another than gsm8k's): not rescored" in answer.stdout
    assert "  flexible-extract: 12 questions" in answer.stdout


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda folder: samples_file(folder).unlink(), "--log_samples"),
        (lambda folder: next(folder.rglob("results_*")).unlink(), "(no_results)"),
        (lambda folder: samples_file(folder).write_text('{"doc_id": 0'), "line 1"),
        (lambda folder: change(folder, lambda line: line.update(exact_match=0.5)), "gsm8k's is 0 or 1"),
        (lambda folder: change(folder, lambda line: line.update(prompt_hash="0" * 64)), "what its hash says"),
        (
            lambda folder: configure(folder, lambda task: task["metric_list"][0].update(ignore_case=False)),
            "gsm8k's filters only",
        ),
    ],
)
def test_what_cannot_be_scored_again_is_one_line(evaluation: Path, spoil: Callable[[Path], object], words: str) -> None:
    spoil(evaluation)
    with pytest.raises(CommandError) as refused:
        rescored_folder(evaluation)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)
    assert refused.value.exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "one of the three"),
        (["results", "--run", "latest"], "one of the three"),
        (["nowhere"], "nowhere: no such file or folder"),
        (["--run", "zzzz"], "no run called 'zzzz'"),
        (["--import", "zzzz"], "no import called 'zzzz'"),
    ],
)
def test_a_mistake_is_one_line(
    served: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    monkeypatch.chdir(served)
    assert run(["rescore", *arguments]) == 1
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
