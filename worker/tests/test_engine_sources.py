"""Which commits of vLLM Python alone can stand for."""

import subprocess
from pathlib import Path

import pytest
from driftline.contracts.jobs import CommitSource
from driftline.contracts.words import FailureKind, Layout
from driftline.git import Mirror
from driftline.git.engine_files import compiled_among, releases_by_nearness
from driftline_worker.checkout import check_out_engine
from driftline_worker.ending import CannotRun

OPS = "vllm/model_executor/layers/mamba/ops"


def git(folder: Path, *words: str) -> str:
    names = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    answer = subprocess.run(["git", "-C", str(folder), *names, *words], check=True, capture_output=True, text=True)
    return answer.stdout.strip()


@pytest.fixture
def vllm(tmp_path: Path) -> Path:
    """A release, and branches that change Python, compiled sources, or nothing of it."""
    folder = tmp_path / "vllm-repository"
    for name in (f"{OPS}/ssd_combined.py", "vllm/__init__.py", "csrc/ops.cu"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("# as released\n")
    git(tmp_path, "init", "-q", "-b", "main", str(folder))
    for words in (["add", "-A"], ["commit", "-q", "-m", "0.32.0"], ["tag", "v0.32.0"]):
        git(folder, *words)
    for branch, name in (("python", f"{OPS}/ssd_combined.py"), ("compiled", "csrc/ops.cu")):
        git(folder, "checkout", "-q", "-b", branch, "main")
        (folder / name).write_text("# changed\n")
        git(folder, "commit", "-q", "-a", "-m", branch)
    git(folder, "checkout", "-q", "-b", "setup", "main")
    (folder / "setup.py").write_text("# changed\n")
    (folder / "pyproject.toml").write_text("[build-system]\nrequires = ['cmake>=4']\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "setup")
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
