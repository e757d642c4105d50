"""What makes two arms identical: the kernels, or all of a vLLM."""

from pathlib import Path

import pytest
from driftline.git import Mirror
from driftline_service.intake.measured_tree import measured_tree
from git_repository import commit, git, start

OPS = "vllm/model_executor/layers/mamba/ops/ssd_combined.py"


def trees(folder: Path, place: Path, *changes: str) -> list[str]:
    """The id at a first commit, and after each change of one file."""
    mirror = Mirror.open(place / "mirrors", str(folder))
    shas = [git(folder, "rev-parse", "HEAD")]
    shas += [commit(folder, name, {name: f"# {name} changed\n"}) for name in changes]
    mirror.fetch()
    found = [mirror.find_kernels(sha) for sha in shas]
    return [measured_tree(mirror, sha, kernels) for sha, kernels in zip(shas, found, strict=True) if kernels]


def repository(place: Path, *files: str) -> Path:
    folder = start(place / "repository")
    commit(folder, "first", dict.fromkeys(files, "# first\n"))
    return folder


PARTS = [
    OPS, "vllm/v1/core/sched/scheduler.py", "csrc/ops.cu", "cmake/utils.cmake", "CMakeLists.txt", "setup.py",
    "requirements/build.txt", "requirements/build/cuda.txt",
]  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_any_part_of_a_vllm_tells_arms_apart(tmp_path: Path, name: str) -> None:
    first, changed, docs = trees(repository(tmp_path, OPS, "csrc/ops.cu"), tmp_path, name, "docs/page.md")
    assert changed != first
    assert docs == changed
    assert len(first) == 40


def test_of_the_projects_file_what_builds_it_counts(tmp_path: Path) -> None:
    folder = repository(tmp_path, OPS)
    (folder / "pyproject.toml").write_text("[build-system]\nrequires = ['cmake']\n")
    first = trees(folder, tmp_path, "tests/test_x.py")[-1]
    (folder / "pyproject.toml").write_text("[build-system]\nrequires = ['cmake']\n\n[tool.ruff]\nline-length = 80\n")
    assert trees(folder, tmp_path, "docs/a.md")[-1] == first
    (folder / "pyproject.toml").write_text("[build-system]\nrequires = ['cmake>=4']\n")
    assert trees(folder, tmp_path, "docs/b.md")[-1] != first


def test_of_our_own_layout_the_kernels_alone_count(tmp_path: Path) -> None:
    folder = repository(tmp_path, "src/mamba2_varlen/__init__.py")
    first, beside, inside = trees(folder, tmp_path, "vllm/x.py", "src/mamba2_varlen/ssd.py")
    assert beside == first
    assert inside != first
