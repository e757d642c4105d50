"""Modes read from vLLM's own sources. Needs a git directory of its history, named by VLLM_REPO (`make test-history`)."""

import os
import subprocess
from pathlib import Path

import pytest
from driftline_worker.children.vllm_engine.modes import ENVS, V0_ENGINE, V1_ENGINE, Modes, modes_of

pytestmark = pytest.mark.history


def _sources(commit: str, folder: Path) -> Path:
    repository = os.environ.get("VLLM_REPO")
    assert repository, "VLLM_REPO names no git directory of vLLM; make test-history VLLM_REPO=/path/to/vllm"
    for file in (ENVS, V0_ENGINE, V1_ENGINE):
        command = ["git", "--git-dir", repository, "show", f"{commit}:vllm/{file}"]
        answer = subprocess.run(command, capture_output=True, check=False)
        if answer.returncode == 0:
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(answer.stdout)
    return folder


@pytest.mark.parametrize(
    ("commit", "expected"),
    [
        ("v0.10.0", Modes(v0=True, v1=True, switch=True)),
        ("017e9f4448b700e85ee16023287b025693c72b9e", Modes(v0=False, v1=True, switch=False)),  # 2026-08-17
    ],
)
def test_modes_of_real_sources(tmp_path: Path, commit: str, expected: Modes) -> None:
    found = modes_of(_sources(commit, tmp_path))
    assert found == expected
    assert (found.lacks("V0") is None) is expected.v0
    assert found.lacks("V1") is None
