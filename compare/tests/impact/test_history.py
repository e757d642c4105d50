"""The impact of vLLM's own commits. Needs a git directory of its history, named by VLLM_REPO (`make test-history`)."""

import os
from pathlib import Path

import pytest
from driftline.contracts.impact import ImpactView
from driftline.contracts.lane import Lane
from driftline.git import Mirror
from driftline.impact.asked import bounded_impact

MIXER2_2025 = {"bamba", "falcon_h1", "granitemoehybrid", "mamba2", "nemotron_h", "plamo2", "zamba2"}


@pytest.mark.history
@pytest.mark.parametrize(
    ("commit", "operators", "models"),
    [
        ("46ae7f666699496f45c0349b87f08d5119720951", {"ssd_chunk_scan", "ssd_combined"}, MIXER2_2025),  # 21783
        ("f1ff50c86cfac67b68ddef67336e96a1b6e424b6", {"ssd_chunk_scan", "ssd_chunk_state"},
         MIXER2_2025 | {"nano_nemotron_vl"}),  # 37501
    ],
)  # fmt: skip
def test_the_models_of_real_commits(
    commit: str, operators: set[str], models: set[str], tmp_path: Path, lanes: tuple[Lane, ...]
) -> None:
    repository = os.environ.get("VLLM_REPO")
    assert repository, "VLLM_REPO names no git directory of vLLM; make test-history VLLM_REPO=/path/to/vllm"
    mirror = Mirror.open(tmp_path, repository)
    mirror.borrow()
    kernels = mirror.find_kernels(commit)
    assert kernels is not None
    view = bounded_impact(mirror, mirror.resolve(f"{commit}^"), commit, kernels, lanes)
    assert isinstance(view, ImpactView), view
    assert view.unread == []
    assert {each.operator for each in view.touched} == operators
    assert {each.name for each in view.models} == models
