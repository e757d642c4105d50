"""The real child: a process of its own, an empty scratch folder, an environment built from nothing, one pipe."""

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from driftline.scoring import score
from driftline_worker.children.hf_engine.spec import read_spec
from driftline_worker.children.hf_engine.task_subset import load_task
from lm_eval.evaluator import evaluate
from lm_eval.models.huggingface import HFLM

CHILD = Path(__file__).resolve().parents[2] / "driftline_worker" / "children" / "evaluate.py"
HELLO_SECONDS = 5
"""From dispatch to first line, also on a busy machine."""


@dataclass(frozen=True)
class Ran:
    """A finished child: its validated lines, its spec file, and when its first line came."""

    lines: list[Any]
    spec_file: Path
    hello_seconds: float

    def of(self, line_type: str) -> list[Any]:
        return [line for line in self.lines if line.type == line_type]


@pytest.fixture(scope="module")
def run(assets: Any, received: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Ran]:
    """One child per mode, shared by the tests of this file."""
    done: dict[str, Ran] = {}

    def once(mode: str) -> Ran:
        if mode not in done:
            done[mode] = _run(assets.spec(mode), tmp_path_factory.mktemp(mode), received)
        return done[mode]

    return once


def _run(spec: dict[str, Any], scratch: Path, received: Any) -> Ran:
    file = scratch / "spec.json"
    file.write_text(json.dumps(spec))
    environment = {
        "PATH": "/usr/bin:/bin", "HOME": str(scratch), "TMPDIR": str(scratch), "OMP_NUM_THREADS": "1",
        "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRITON_CACHE_DIR": str(scratch), "USE_HUB_KERNELS": "NO",
    }  # fmt: skip
    times: list[float] = []

    def start(descriptor: int) -> None:
        command = [sys.executable, "-P", "-s", str(CHILD), "--spec", str(file), "--channel-fd", str(descriptor)]
        reading, writing = os.pipe()
        command[-1] = str(writing)
        began = time.monotonic()
        with subprocess.Popen(
            command, cwd=scratch, env=environment, pass_fds=[writing], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        ) as process:
            os.close(writing)
            with os.fdopen(reading, "rb") as pipe:
                for line in pipe:
                    times.append(time.monotonic() - began)
                    os.write(descriptor, line)
            _, errors = process.communicate()
        assert process.returncode == 0, errors.decode()[-3000:]

    return Ran(received(start), file, times[0])


MODES = pytest.mark.parametrize("mode", ["V0", "V1"])


@MODES
def test_lines_come_in_the_order_of_the_work(run: Any, mode: str) -> None:
    ran = run(mode)
    types = [line.type for line in ran.lines if line.type != "progress"]
    count = 8
    assert types == ["hello", "environment", *["sample"] * count, "scores", *["teacher_forced"] * count, "result"]
    assert ran.lines[-1].lines == 2 * count
    assert ran.hello_seconds < HELLO_SECONDS
    assert [p.phase for p in ran.of("progress") if p.done == p.total] == ["load", "generate", "teacher_forced"]


@MODES
def test_every_question_is_told_once_with_its_place(run: Any, assets: Any, mode: str) -> None:
    ran = run(mode)
    spec = read_spec(ran.spec_file)
    assert {line.doc_id: line.rank for line in ran.of("sample")} == {d: r for r, d in enumerate(spec.doc_ids)}
    assert len(ran.of("sample")) == len(spec.doc_ids)
    assert [line.rank // spec.block for line in ran.of("sample")] == sorted(
        line.rank // spec.block for line in ran.of("sample")
    )
    rows = [json.loads(line) for line in spec.test_path.read_text().splitlines()]
    for line in ran.of("sample"):
        assert (line.question, line.target) == (rows[line.doc_id]["question"], rows[line.doc_id]["answer"])


@MODES
def test_scores_and_answers_are_those_of_unmodified_lm_eval(run: Any, unpatched: None, mode: str) -> None:
    """lm-eval's evaluate() with its own model on transformers' own functions, whole prompts."""
    ran = run(mode)
    spec = read_spec(ran.spec_file)
    task = load_task(spec)
    task.set_config(
        "generation_kwargs",
        {"until": ["Question:", "</s>"], "do_sample": False, "temperature": 0.0, "max_gen_toks": 12},
    )
    lm = HFLM(pretrained=str(spec.model_path), dtype="float32", device="cpu", batch_size=1)
    expected = evaluate(lm, {"tasks": {"tiny": task}})
    samples = expected["samples"]["tiny"]
    responses = {sample["doc_id"]: sample["resps"][0][0] for sample in samples}
    assert {line.doc_id: line.response for line in ran.of("sample")} == responses
    [scores] = ran.of("scores")
    aggregates = expected["results"]["tiny"]
    for name in ("strict-match", "flexible-extract"):
        right = {sample["doc_id"] for sample in samples if sample["filter"] == name and sample["exact_match"] == 1}
        assert set(scores.right[name]) == right
        assert (
            scores.metrics[f"exact_match,{name}"] == aggregates[f"exact_match,{name}"] == len(right) / len(spec.doc_ids)
        )
        assert scores.stderr[f"exact_match,{name}"] == aggregates[f"exact_match_stderr,{name}"]
    assert scores.num_fewshot == 2
    assert scores.task_version == "2.0"
    hashes = {line.doc_id: (line.doc_hash, line.prompt_hash, line.target_hash) for line in ran.of("sample")}
    assert hashes == {s["doc_id"]: (s["doc_hash"], s["prompt_hash"], s["target_hash"]) for s in samples}


@MODES
def test_driftline_scores_the_stored_answers_as_lm_eval_did(run: Any, mode: str) -> None:
    ran = run(mode)
    [scores] = ran.of("scores")
    for name, right in scores.right.items():
        mine = [line.doc_id for line in ran.of("sample") if score(line.response, line.target)[name].right]
        assert sorted(mine) == right
    assert 0 < len(scores.right["flexible-extract"]) < len(ran.of("sample"))  # else this says little


def test_both_modes_measure_the_same_thing(run: Any) -> None:
    """Good kernels: chunked prefill changes neither an answer nor, beyond rounding, a log-probability."""
    answers = [{line.doc_id: line.response for line in run(mode).of("sample")} for mode in ("V0", "V1")]
    assert answers[0] == answers[1]
    whole, chunked = ({line.doc_id: line for line in run(mode).of("teacher_forced")} for mode in ("V0", "V1"))
    for doc_id, line in whole.items():
        assert (line.prompt_tokens, line.answer_tokens) == (
            chunked[doc_id].prompt_tokens,
            chunked[doc_id].answer_tokens,
        )
        mine, other = _floats(line.logprobs), _floats(chunked[doc_id].logprobs)
        assert len(mine) == line.prompt_tokens + line.answer_tokens
        assert max(abs(a - b) for a, b in zip(mine, other, strict=True)) < 1e-4
        assert max(mine) < 0


@MODES
def test_the_environment_says_what_was_measured(run: Any, mode: str) -> None:
    [line] = run(mode).of("environment")
    words = {"V0": "V0 (hf: whole prompt)", "V1": "V1 (hf: prefill in chunks of 16)"}[mode]
    assert line.must_match["mode"] == line.recorded["mode_seen"] == words
    assert line.must_match["gpu_type"] == line.must_match["driver"] == "cpu"
    assert line.recorded["served.ssd_prefill"].startswith("mamba2_varlen.torch_backend.ssd ")
    assert line.recorded["dtype"] == "float32"
    for key in ("model_weights_sha256", "tokenizer_probe_sha256", "dataset_test_sha256", "task_config_sha256"):
        assert len(line.must_match[key]) == 64
    assert line.must_match["lm_eval"] == "0.4.13"
    assert not any(
        "/" in value and value.startswith("/") for value in [*line.must_match.values(), *line.recorded.values()]
    )


def test_the_modes_differ_in_the_key_by_the_schedule_alone(run: Any) -> None:
    keys = [run(mode).of("environment")[0].must_match for mode in ("V0", "V1")]
    differing = {name for name in keys[0] if keys[0][name] != keys[1][name]}
    assert differing == {"mode", "generation", "task_config_sha256"}


def _floats(data: str) -> list[float]:
    return list(memoryview(base64.b64decode(data)).cast("f"))
