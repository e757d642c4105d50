"""Which commits of vLLM Python alone can stand for."""

from pathlib import Path

import pytest
from driftline.contracts.jobs import CommitSource
from driftline.contracts.words import FailureKind, Layout
from driftline.git import Mirror
from driftline.git.engine_files import compiled_among, releases_by_nearness
from driftline_worker.checkout import check_out_engine
from driftline_worker.ending import CannotRun
from git_repository import branch, commit, git, start

OPS = "vllm/model_executor/layers/mamba/ops"


@pytest.fixture
def vllm(tmp_path: Path) -> Path:
    """A release, and branches that change Python, compiled sources, or nothing of it."""
    folder = start(tmp_path / "vllm-repository")
    released = (f"{OPS}/ssd_combined.py", "vllm/__init__.py", "csrc/ops.cu")
    commit(folder, "0.32.0", dict.fromkeys(released, "# as released\n"))
    git(folder, "tag", "v0.32.0")
    branch(folder, "python", {f"{OPS}/ssd_combined.py": "# changed\n"})
    branch(folder, "compiled", {"csrc/ops.cu": "# changed\n"})
    build = "[build-system]\nrequires = ['cmake>=4']\n"
    branch(folder, "setup", {"setup.py": "# changed\n", "pyproject.toml": build})
    return folder


def checked_out(vllm: Path, branch: str, release: str, place: Path) -> Path:
    source = CommitSource(url=str(vllm), sha=git(vllm, "rev-parse", branch), layout=Layout.VLLM, kernel_path=OPS)
    return check_out_engine(source, release, mirrors=place / "m", import_dir=place / "import", allow_local=True)


def test_a_change_of_python_brings_the_whole_package(vllm: Path, tmp_path: Path) -> None:
    place = checked_out(vllm, "python", "0.32.0", tmp_path)
    assert place == tmp_path / "import" / "vllm"
    assert (place / "model_executor/layers/mamba/ops/ssd_combined.py").read_text() == "# changed\n"
    assert not (tmp_path / "import" / "csrc").exists()


@pytest.mark.parametrize(
    ("branch", "release", "reason", "words"),
    [
        ("compiled", "0.32.0", "compiled_sources_changed", "other compiled sources than v0.32.0: csrc/ops.cu"),
        ("setup", "0.32.0", "compiled_sources_changed", r"setup\.py, pyproject\.toml \[build-system\]; the installed"),
        ("python", "0.31.0", "release_unknown", "has no tag v0.31.0"),
    ],
)
def test_what_python_cannot_stand_for(
    vllm: Path, tmp_path: Path, branch: str, release: str, reason: str, words: str
) -> None:
    with pytest.raises(CannotRun, match=words) as refusal:
        checked_out(vllm, branch, release, tmp_path)
    assert (refusal.value.kind, refusal.value.reason) == (FailureKind.UNSUPPORTED, reason)


def test_sources_that_are_compiled() -> None:
    paths = [
        "csrc/a.cu", "cmake/x.cmake", "CMakeLists.txt", "setup.py", "requirements/build.txt", "requirements/build/cuda.txt",
        "vllm/a.py", "tests/csrc/b.cu", "docs/csrc.md", "requirements/common.txt",
    ]  # fmt: skip
    assert compiled_among(paths) == paths[:6]


def test_the_nearest_release_is_one_that_serves_the_commit(vllm: Path, tmp_path: Path) -> None:
    """main goes on: 0.33.0 compiles other sources, and a later commit is nearer to it; one that goes back is not."""
    git(vllm, "checkout", "-q", "main")
    for name, tag in (("csrc/ops.cu", "v0.33.0"), ("vllm/a.py", "later")):
        (vllm / name).write_text(f"# {tag}\n")
        git(vllm, "add", "-A")
        git(vllm, "commit", "-q", "-m", tag)
        git(vllm, "tag", tag)
    (vllm / "csrc/ops.cu").write_text("# as released\n")
    git(vllm, "commit", "-q", "-a", "-m", "back")
    mirror = Mirror.open(tmp_path / "m", str(vllm))
    mirror.fetch()
    releases = ["0.32.0", "0.33.0", "0.99.0"]
    assert releases_by_nearness(mirror, mirror.resolve("python"), releases) == ["0.32.0", "0.33.0"]
    assert releases_by_nearness(mirror, mirror.resolve("later"), releases) == ["0.33.0", "0.32.0"]
    assert releases_by_nearness(mirror, mirror.resolve("main"), releases) == ["0.32.0", "0.33.0"]
