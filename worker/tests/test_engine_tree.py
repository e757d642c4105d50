"""A commit of vLLM on disk: one copy of what is the same, built in full where Python alone cannot stand for it."""

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from driftline.contracts.channel import Progress
from driftline.contracts.jobs import CommitSource
from driftline.contracts.lane import EngineEnvironment
from driftline.contracts.words import FailureKind, Layout
from driftline_worker.ending import Abandoned, CannotRun, Failed
from driftline_worker.engine_build import EngineBuild, NotBuilt
from driftline_worker.engine_cache import ENGINE, cached_engine, clean_engines
from driftline_worker.engine_tree import engine_tree
from driftline_worker.sandbox import Sandbox
from driftline_worker.settings import ChildSettings
from driftline_worker.stop_request import StopRequest
from git_repository import branch, commit, git, start

OPS = "vllm/model_executor/layers/mamba/ops"
BUILD = ["sh", "build.sh", "{out}", "{python}"]
WORKS = """
echo building >&2
mkdir "$1/vllm" && cp -r vllm/. "$1/vllm" && cat csrc/ops.cu > "$1/vllm/_C.so"
"$2" -c 'import os; print(os.environ["SETUPTOOLS_SCM_PRETEND_VERSION"], os.environ["MAX_JOBS"])' > "$1/vllm/_version.py"
"""


@pytest.fixture
def vllm(tmp_path: Path) -> Path:
    """A release; branches that change a document, Python, and compiled sources with builds that end in several ways."""
    folder = start(tmp_path / "vllm-repository")
    released = (f"{OPS}/ssd_combined.py", "vllm/__init__.py", "csrc/ops.cu", "tests/test_a.py")
    commit(folder, "0.32.0", dict.fromkeys(released, "# as released\n"))
    git(folder, "tag", "v0.32.0")
    changes = {
        "docs": {"docs/a.md": "words"}, "python": {"vllm/a.py": "A = 1"},
        "works": {"csrc/ops.cu": "compiled", "build.sh": WORKS},
        "fails": {"csrc/ops.cu": "int x", "build.sh": "echo 'ops.cu:1: error: expected ;' >&2; exit 3"},
        "forgets": {"csrc/ops.cu": "x", "build.sh": "echo done"},
        "leaks": {"csrc/ops.cu": "x", "build.sh": 'cp -r vllm "$1/vllm"; ln -s /etc/passwd "$1/vllm/data"'},
        "script": {"csrc/ops.cu": "compiled", "build.sh": WORKS + "echo of another commit > \"$1/vllm/_C.so\"\n"},
        "hangs": {"csrc/ops.cu": "x", "build.sh": "sleep 600"},
    }  # fmt: skip
    for name, files in changes.items():
        branch(folder, name, files)
    return folder


@pytest.fixture
def settings(tmp_path: Path) -> ChildSettings:
    return ChildSettings(data_dir=tmp_path / "data", allow_local_repositories=True)


Tree = Callable[..., Any]


@pytest.fixture
def tree(vllm: Path, settings: ChildSettings, usual_sandbox: Sandbox, make_sink: Callable[[], Any]) -> Tree:
    """The engine tree of a branch, as a context manager."""

    def make(branch: str, build: list[str] = BUILD, *, seconds: int = 60, stop: StopRequest | None = None) -> Any:
        source = CommitSource(url=str(vllm), sha=git(vllm, "rev-parse", branch), layout=Layout.VLLM, kernel_path=OPS)
        wanted = EngineEnvironment(name="e", vllm="0.32.0", python="x/python", build=build, build_seconds=seconds)
        sink = make.sink = make_sink()  # type: ignore[attr-defined]
        job = EngineBuild(source, wanted, usual_sandbox, settings, 2, sink, stop or StopRequest())
        return engine_tree(source, wanted, settings=settings, identity="0" * 64, build=job)

    return make


def engines(settings: ChildSettings) -> list[str]:
    return sorted(path.name for path in settings.engines.glob(f"*{ENGINE}"))


def test_equal_python_trees_are_one_folder_and_no_build(tree: Tree, settings: ChildSettings) -> None:
    with tree("main") as first, tree("docs") as same, tree("python") as other:
        assert first == same
        assert not first.built
        assert (other.folder / "vllm" / "a.py").read_text() == "A = 1"
        assert not (first.folder / "csrc").exists()
    assert len(engines(settings)) == 2
    (first.folder / "vllm" / "mark").write_text("kept")
    with tree("main") as again:
        assert (again.folder / "vllm" / "mark").exists()


def test_without_a_build_other_compiled_sources_are_unsupported(tree: Tree, settings: ChildSettings) -> None:
    with pytest.raises(CannotRun, match=r"csrc/ops\.cu.*a full build is not configured") as refusal, tree("works", []):
        pass
    assert (refusal.value.kind, refusal.value.reason) == (FailureKind.UNSUPPORTED, "compiled_sources_changed")
    assert engines(settings) == []


def test_a_configured_build_is_run_once_and_kept_by_what_went_into_it(tree: Tree, settings: ChildSettings) -> None:
    with tree("works") as made:
        assert made.built
        package = made.folder / "vllm"
        assert (package / "_C.so").read_text() == "compiled"
        assert (package / "_version.py").read_text() == "0.32.0 2\n"
        assert (package / OPS.removeprefix("vllm/") / "ssd_combined.py").is_file()
    phases = {line.phase for line in tree.sink.lines if isinstance(line, Progress)}  # type: ignore[attr-defined]
    assert phases == {"build_engine"}
    assert len(tree.sink.lines) == sum(isinstance(line, Progress) for line in tree.sink.lines)  # type: ignore[attr-defined]
    with tree("works") as again:
        assert again == made
        assert tree.sink.lines == []  # type: ignore[attr-defined]
    with tree("works", ["sh", "build.sh", "{out}", "{python}", "-O3"]) as otherwise:
        assert otherwise.folder != made.folder
    with tree("script") as other:  # the same sources, and a file beside them that the build runs
        assert (other.folder / "vllm" / "_C.so").read_text() == "of another commit\n"
    assert len(engines(settings)) == 3
    assert not list(settings.scratch.iterdir())


@pytest.mark.parametrize(
    ("branch", "build", "words"),
    [
        ("fails", BUILD, r"exit code 3: ops\.cu:1: error: expected ;"),
        ("forgets", BUILD, "left no package vllm in .out.: done"),
        ("leaks", BUILD, "left a link in its package, .*data"),
        ("works", ["no-such-program"], "no-such-program cannot be run: No such file"),
    ],
)
def test_a_build_that_fails_is_told_and_nothing_is_kept(
    tree: Tree, settings: ChildSettings, branch: str, build: list[str], words: str
) -> None:
    with pytest.raises(NotBuilt, match=words) as refusal, tree(branch, build):
        pass
    ending = refusal.value.ending
    assert isinstance(ending, Failed)
    assert ending.kind is FailureKind.PERMANENT
    assert ending.reason.endswith("build_failed")
    assert not [path.name for path in settings.engines.iterdir() if path.is_dir()]


def test_a_build_has_a_limit_and_can_be_stopped(tree: Tree) -> None:
    with pytest.raises(NotBuilt, match="not done after 2 s") as slow, tree("hangs", seconds=2):
        pass
    assert isinstance(slow.value.ending, Failed)
    stop = StopRequest()
    threading.Timer(1.0, lambda: stop.ask("stopped", "the run was cancelled")).start()
    began = time.monotonic()
    with pytest.raises(NotBuilt) as stopped, tree("hangs", stop=stop):
        pass
    assert isinstance(stopped.value.ending, Abandoned)
    assert time.monotonic() - began < 30


def test_two_who_want_the_same_make_it_once(tmp_path: Path) -> None:
    made, seen = [], []

    def make(folder: Path) -> None:
        made.append(folder)
        time.sleep(0.3)
        (folder / "vllm").mkdir()

    def use() -> None:
        with cached_engine(tmp_path / "engines", "built-1", make, patience_seconds=20) as folder:
            seen.append((folder / "vllm").is_dir())

    threads = [threading.Thread(target=use) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), seen) == (1, [True] * 4)


def test_what_is_too_old_or_too_much_goes_and_what_is_used_stays(tmp_path: Path) -> None:
    cache = tmp_path / "engines"

    def make(folder: Path) -> None:
        (folder / "vllm").write_bytes(bytes(1 << 20))

    for name in ("python-1", "python-2"):
        with cached_engine(cache, name, make, patience_seconds=1):
            pass
        time.sleep(0.01)
    (cache / "python-3.making-x").mkdir()
    now = time.time()
    with cached_engine(cache, "python-1", make, patience_seconds=1):
        gone = clean_engines(cache, most_bytes=1 << 20, now=now, unused_since=0)
        assert [folder.folder.name for folder in gone] == ["python-2.engine"]
        assert clean_engines(cache, most_bytes=0, now=now, unused_since=now + 9) == []
    assert (cache / "python-3.making-x").exists()
    later = now + 2 * 86400
    assert len(clean_engines(cache, most_bytes=1 << 30, now=later, unused_since=later)) == 1
    assert not [path for path in cache.iterdir() if path.is_dir()]
