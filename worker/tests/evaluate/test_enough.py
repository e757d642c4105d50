"""The child is told that enough was asked, whenever that comes: it ends with the scores of those questions."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from driftline.scoring import score
from driftline_worker.children.hf_engine import evaluation
from driftline_worker.children.hf_engine.enough import FILE_NAME, enough_after
from driftline_worker.children.hf_engine.spec import read_spec
from driftline_worker.children.hf_engine.task_subset import load_task
from driftline_worker.children.line_channel import Channel

CHILD = Path(__file__).resolve().parents[2] / "driftline_worker" / "children" / "evaluate.py"
DOC_IDS = [5, 2, 19, 0, 11, 7, 23, 14]
BLOCK = 4


@pytest.fixture
def evaluated(
    assets: Any, plain_lm: Any, unpatched: None, received: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Any:
    """The lines of generate and force; `enough` appears when so many samples were sent, before any if 0."""
    monkeypatch.setattr(plain_lm, "batch_size_per_gpu", 2)
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(assets.spec("V0", doc_ids=DOC_IDS, block=BLOCK, batch_size=2)))
    spec = replace(read_spec(file), batch_size=plain_lm.batch_size)

    def run(enough: str | None, at: int = 0) -> list[Any]:
        def write(descriptor: int) -> None:
            channel = _Counting(descriptor)
            if enough is not None:
                channel.at[at] = lambda: (tmp_path / FILE_NAME).write_text(enough)
                channel.look()
            task = load_task(spec)
            evaluation.generate(plain_lm, task, spec, channel)
            evaluation.force(plain_lm, task, spec, channel)

        lines = received(write)
        (tmp_path / FILE_NAME).unlink(missing_ok=True)
        return lines

    return run


class _Counting(Channel):
    """Does something once so many samples were sent."""

    def __init__(self, fd: int) -> None:
        super().__init__(fd)
        self.at: dict[int, Any] = {}
        self.samples = 0

    def send(self, line_type: str, /, **fields: object) -> None:
        super().send(line_type, **fields)
        self.samples += line_type == "sample"
        self.look()

    def look(self) -> None:
        if (act := self.at.pop(self.samples, None)) is not None:
            act()


def of(lines: list[Any], line_type: str) -> list[Any]:
    return [line for line in lines if line.type == line_type]


def test_it_stops_after_the_questions_that_are_enough(evaluated: Any) -> None:
    whole, short = evaluated(None), evaluated("4", at=4)
    assert [line.doc_id for line in of(short, "sample")] == [line.doc_id for line in of(whole, "sample")][:4]
    assert [line.response for line in of(short, "sample")] == [line.response for line in of(whole, "sample")][:4]
    [scores] = of(short, "scores")
    answers = {line.doc_id: line for line in of(short, "sample")}
    for name in ("strict-match", "flexible-extract"):
        right = [one for one in answers if score(answers[one].response, answers[one].target)[name].right]
        assert scores.right[name] == sorted(right)
        assert scores.metrics[f"exact_match,{name}"] == pytest.approx(len(right) / 4)
        assert set(scores.right[name]) == set(of(whole, "scores")[0].right[name]) & set(DOC_IDS[:4])


def test_log_probabilities_are_those_of_all_questions_all_the_same(evaluated: Any) -> None:
    whole, short = evaluated(None), evaluated("4", at=0)
    assert {line.doc_id: line.logprobs for line in of(short, "teacher_forced")} == {
        line.doc_id: line.logprobs for line in of(whole, "teacher_forced")
    }


def test_said_in_the_middle_of_a_block_it_waits_for_no_more_of_it(evaluated: Any, plain_lm: Any) -> None:
    """What was answered beyond is told, and is no part of the scores."""
    lines = evaluated("4", at=6)
    assert len(of(lines, "sample")) == 6
    assert {line.rank for line in of(lines, "sample")} > set(range(4))
    assert {doc for right in of(lines, "scores")[0].right.values() for doc in right} <= set(DOC_IDS[:4])


def test_said_before_the_first_question_it_still_asks_those(evaluated: Any) -> None:
    assert {line.rank for line in of(evaluated("4", at=0), "sample")} == {0, 1, 2, 3}


@pytest.mark.parametrize(("enough", "at"), [("8", 0), ("4", 8), ("none", 0)])
def test_said_too_late_or_not_understood_it_asks_all(evaluated: Any, enough: str, at: int) -> None:
    lines = evaluated(enough, at=at)
    assert {line.rank for line in of(lines, "sample")} == set(range(8))
    assert len(of(lines, "scores")) == 1


def test_without_a_word_nothing_is_enough(tmp_path: Path) -> None:
    assert enough_after(tmp_path) is None
    assert enough_after(tmp_path / "nowhere") is None
    for nonsense in ("", "none", "-4", "0", "3.5", "²"):
        (tmp_path / FILE_NAME).write_text(nonsense, encoding="utf-8")
        assert enough_after(tmp_path) is None
    (tmp_path / FILE_NAME).write_text("300\n")
    assert enough_after(tmp_path) == 300


def test_the_child_itself_ends_well_with_fewer_samples(assets: Any, received: Any, tmp_path: Path) -> None:
    """A process of its own, told before it began: exit code 0, a last line, and every line accounted for."""
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(assets.spec("V1", doc_ids=DOC_IDS, block=BLOCK)))
    (tmp_path / FILE_NAME).write_text("4")
    environment = {
        "PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TMPDIR": str(tmp_path), "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRITON_CACHE_DIR": str(tmp_path), "USE_HUB_KERNELS": "NO",
    }  # fmt: skip

    def start(descriptor: int) -> None:
        command = [sys.executable, "-P", "-s", str(CHILD), "--spec", str(file), "--channel-fd", str(descriptor)]
        ended = subprocess.run(command, cwd=tmp_path, env=environment, pass_fds=[descriptor], capture_output=True)
        assert ended.returncode == 0, ended.stderr.decode()[-3000:]

    lines = received(start)
    assert {line.rank for line in of(lines, "sample")} == set(range(4))
    assert {line.doc_id for line in of(lines, "teacher_forced")} == set(DOC_IDS)
    assert lines[-1].type == "result"
    assert lines[-1].lines == 4 + len(DOC_IDS)
    [environment_line] = of(lines, "environment")
    assert environment_line.must_match["questions"] == str(len(DOC_IDS))
