"""Modes and banners read from vLLM's own sources. Needs a git directory of its history, named by VLLM_REPO
(`make test-history`)."""

import ast
import logging
import os
import subprocess
from pathlib import Path

import pytest
from driftline_worker.children.vllm_engine.banner import Banner, banner_in
from driftline_worker.children.vllm_engine.modes import ENVS, V0_ENGINE, V1_ENGINE, Modes, modes_of

pytestmark = pytest.mark.history

MAIN = "017e9f4448b700e85ee16023287b025693c72b9e"
"""of 2026-08-17, newer than every release that a lane names"""


def _file(commit: str, file: Path | str) -> bytes | None:
    """A file of the package; None if that commit has none of that name."""
    repository = os.environ.get("VLLM_REPO")
    assert repository, "VLLM_REPO names no git directory of vLLM; make test-history VLLM_REPO=/path/to/vllm"
    command = ["git", "--git-dir", repository, "show", f"{commit}:vllm/{file}"]
    answer = subprocess.run(command, capture_output=True, check=False)
    return answer.stdout if answer.returncode == 0 else None


def _sources(commit: str, folder: Path) -> Path:
    for file in (ENVS, V0_ENGINE, V1_ENGINE):
        if (text := _file(commit, file)) is not None:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(text)
    return folder


def _banner_line(commit: str, file: str) -> str:
    """The line that this file logs of an engine, in the form that the same commit's logger gives it."""
    text, logger = _file(commit, file), _file(commit, "logger.py")
    assert text is not None and logger is not None
    said = [
        node.value for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("Initializing a")
    ]  # fmt: skip
    assigned = {
        node.targets[0].id: node.value for node in ast.parse(logger).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }  # fmt: skip
    pieces = [piece for piece in ast.walk(assigned["_FORMAT"]) if isinstance(piece, ast.Constant)]
    form = logging.Formatter("".join(str(piece.value) for piece in pieces), ast.literal_eval(assigned["_DATE_FORMAT"]))
    values = ("0.10.0", "model='x', dtype=torch.bfloat16", "0")[: said[0].count("%")]
    record = logging.LogRecord("vllm", logging.INFO, f"/vllm/{file}", 70, said[0], values, None)
    record.fileinfo = file.rpartition("/")[2]
    return form.format(record)


@pytest.mark.parametrize(
    ("commit", "expected"),
    [
        ("v0.10.0", Modes(v0=True, v1=True, switch=True)),
        ("2111997f96f33b118ec0c562cc2df5681862cff3", Modes(v0=False, v1=True, switch=False)),  # torch 2.11, as 0.20
        (MAIN, Modes(v0=False, v1=True, switch=False)),
    ],
)
def test_modes_of_real_sources(tmp_path: Path, commit: str, expected: Modes) -> None:
    found = modes_of(_sources(commit, tmp_path))
    assert found == expected
    assert (found.lacks("V0") is None) is expected.v0
    assert found.lacks("V1") is None


@pytest.mark.parametrize(
    ("commit", "file", "mode"),
    [
        ("v0.10.0", "engine/llm_engine.py", "V0"),
        ("v0.10.0", "v1/engine/core.py", "V1"),
        (MAIN, "v1/engine/core.py", "V1"),
    ],
)
def test_banners_as_the_sources_write_them(commit: str, file: str, mode: str) -> None:
    found = banner_in(_banner_line(commit, file))
    assert found == Banner(mode, "0.10.0")
    assert found.settings["dtype"] == "torch.bfloat16"
