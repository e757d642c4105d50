"""The words by which vLLM's failures are classed, in vLLM's own sources. Needs VLLM_REPO (`make test-history`)."""

import os
import subprocess

import pytest
from driftline_worker.children.vllm_engine.log_errors import classify

pytestmark = pytest.mark.history

RELEASE, MAIN = "v0.10.0", "017e9f4448b700e85ee16023287b025693c72b9e"


@pytest.mark.parametrize("commit", [RELEASE, MAIN])
@pytest.mark.parametrize(
    ("words", "error", "reason"),
    [
        ("Free memory on device", "less than desired GPU memory utilization", "gpu_memory_taken"),
        ("No available memory for the cache blocks", "", "no_cache_blocks"),
        ("To serve at least one request", "is larger than the available KV cache memory", "model_too_long"),
        ("Unknown dtype: ", "'float12'", "wrong_dtype"),
        ("Bfloat16 is only supported on GPUs", "", "wrong_dtype"),
        ("Failed to infer device type", "", "no_gpu"),
        ("EngineCore encountered an issue", "", "engine_died"),
        ("Engine core initialization failed", "", "engine_died"),
    ],
)
def test_what_vllm_says_is_what_is_looked_for(commit: str, words: str, error: str, reason: str) -> None:
    repository = os.environ.get("VLLM_REPO")
    assert repository, "VLLM_REPO names no git directory of vLLM; make test-history VLLM_REPO=/path/to/vllm"
    command = ["git", "--git-dir", repository, "grep", "--quiet", "--fixed-strings", words, commit, "--", "vllm"]
    assert subprocess.run(command, check=False).returncode == 0, f"{commit} does not say {words!r}"
    found = classify(f"ERROR 07-25 10:00:00 [core.py:586] RuntimeError: {words} {error}")
    assert found is not None
    assert found.reason == reason
