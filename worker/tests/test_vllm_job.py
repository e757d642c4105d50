"""An evaluation on vLLM from job to prepared engine: real environment, real walls, real checkout; only the engine is not there.

The environment is an empty one in which vLLM is a package of six files; the child is evaluate_vllm's, as far as its start.
"""

import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from driftline.contracts.jobs import CommitSource, EvaluateSpec
from driftline.contracts.lane import EngineEnvironment, Lane
from driftline.contracts.words import Engine, FailureKind, Layout
from driftline_worker import sandbox
from driftline_worker.bench import Bench
from driftline_worker.ending import Ending, Failed
from driftline_worker.eval_environment import EvalEnvironment
from driftline_worker.settings import ChildSettings
from driftline_worker.stop_request import StopRequest
from git_repository import branch, commit, git, start

ROOT = Path(__file__).resolve().parents[2]
ENGINE = "class LLMEngine: ...\n"
SWITCH = 'environment_variables = {"VLLM_USE_V1": lambda: True}\n'
RELEASE = {
    "__init__.py": "", "envs.py": SWITCH, "engine/llm_engine.py": ENGINE, "v1/engine/llm_engine.py": ENGINE,
    "same.py": "X = 1\n", "changed.py": "Y = 'release'\n",
}  # fmt: skip
CHILD = """
    import sys, types
    package = types.ModuleType("driftline_worker")
    package.__path__ = [{package!r}]
    sys.modules["driftline_worker"] = package
    import json, os
    from pathlib import Path
    from driftline_worker.children.hf_engine.refusal import Refusal
    from driftline_worker.children.kernel_child import run_with_spec
    from driftline_worker.children.vllm_engine.engine_start import prepare
    from driftline_worker.children.vllm_engine.spec import read_spec

    def evaluate(spec_file, channel):
        spec = read_spec(spec_file)
        prepared = prepare(spec, Path.cwd())
        import vllm, vllm.changed
        try:
            (spec.import_dir / "vllm" / "changed.py").write_text("Y = 'poisoned'")
            wall = "none"
        except OSError as error:
            wall = error.strerror
        overlay = prepared.overlay
        told = dict(
            y=vllm.changed.Y, compiled=Path(vllm.__file__).with_name("_C.so").read_text(), wall=wall, modes=str(prepared.modes),
            changed=None if overlay is None else overlay.changed, switch=os.environ.get("VLLM_USE_V1"),
            same=str(Path(vllm.__file__).with_name("same.py").resolve()),
        )
        raise Refusal("permanent", "prepared", json.dumps(told))

    sys.exit(run_with_spec("prepare", evaluate, sys.argv[1:]))
"""


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)


@pytest.fixture(scope="session")
def vllm_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment of its own, with a release of vLLM and its compiled part."""
    folder = tmp_path_factory.mktemp("vllm-environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    (packages,) = folder.glob("lib/python*/site-packages")
    write(packages / "vllm", RELEASE | {"_C.so": "the release's"})
    requirements = "Requires-Dist: torch==2.7.1\n"
    write(
        packages,
        {"vllm-0.10.0.dist-info/METADATA": f"Metadata-Version: 2.1\nName: vllm\nVersion: 0.10.0\n{requirements}"},
    )
    write(packages, {"torch-2.7.1.dist-info/METADATA": "Metadata-Version: 2.1\nName: torch\nVersion: 2.7.1+cu126\n"})
    return folder / "bin" / "python"


@pytest.fixture
def vllm(tmp_path: Path) -> Path:
    """The release's repository, with a change of Python and one of what is compiled."""
    folder = start(tmp_path / "repository")
    build = 'mkdir "$1/vllm" && cp -r vllm/. "$1/vllm" && cp csrc/ops.cu "$1/vllm/_C.so"\n'
    released = {f"vllm/{name}": text for name, text in RELEASE.items()}
    commit(folder, "0.10.0", released | {"csrc/ops.cu": "released", "build.sh": build})
    git(folder, "tag", "v0.10.0")
    changes = {
        "python": {"vllm/changed.py": "Y = 'commit'\n", "vllm/engine/llm_engine.py": "LLMEngine = None\n"},
        "compiled": {"vllm/changed.py": "Y = 'built'\n", "csrc/ops.cu": "the commit's"},
    }
    for name, files in changes.items():
        branch(folder, name, files)
    return folder


Evaluated = Callable[..., Ending]


@pytest.fixture
def evaluated(
    vllm: Path, vllm_python: Path, evaluate_spec: EvaluateSpec, lane: Lane, environment: EvalEnvironment, tmp_path: Path,
    make_sink: Callable[[], Any],
) -> Evaluated:  # fmt: skip
    """How the job of a branch on a vLLM lane ends. The child says what it prepared in the words of its failure."""
    children = tmp_path / "children"
    children.mkdir()
    code = textwrap.dedent(CHILD.format(package=str(ROOT / "worker" / "driftline_worker")))
    (children / "evaluate_vllm.py").write_text(code)
    settings = ChildSettings(
        data_dir=tmp_path / "data", engine_pythons={"e": vllm_python}, allow_local_repositories=True, assets_root=ROOT
    )

    def run(name: str, mode: str = "V1", **more: Any) -> Ending:
        source = CommitSource(url=str(vllm), sha=git(vllm, "rev-parse", name), layout=Layout.VLLM, kernel_path="vllm")
        wanted = EngineEnvironment(name="e", vllm="0.10.0", python="no/python", pins={"torch": "2.7.1"}, **more)
        canary = {"path": "canary/model", "name": "canary"}
        task = lane.task.model_copy(update={
            "yaml": "canary/tasks/gsm8k_canary.yaml",
            "train_sha256": "b6ca666c6f1768019e70f32bb464194d70d9798017af2c850d67ddac85db24fa",
            "test_sha256": "fd8e301fc1837ee5bfea775c1e3e17f15b840187bb752b84178116bd2b0f8a2c",
        })  # fmt: skip
        fields = lane.model_dump() | {
            "engine": Engine.VLLM,
            "mode": mode,
            "backend": "vllm",
            "runs_in": wanted,
            "model": canary,
            "task": task,
        }
        spec = evaluate_spec.model_copy(update={"source": source, "lane": Lane.model_validate(fields)})
        bench = Bench(settings, sandbox.choose(environment, "auto"), children=children)
        return bench.run(spec, make_sink(), StopRequest())

    return run


def told(ending: Ending) -> dict[str, Any]:
    assert isinstance(ending, Failed)
    assert ending.reason == "prepared", ending.message
    found: dict[str, Any] = json.loads(ending.message)
    return found


def test_a_commits_python_runs_over_the_releases_compiled_parts(evaluated: Evaluated, vllm_python: Path) -> None:
    found = told(evaluated("python"))
    assert (found["y"], found["compiled"]) == ("commit", "the release's")
    assert found["changed"] == ["changed.py", "engine/llm_engine.py"]
    assert found["same"].startswith(str(vllm_python.parents[1]))
    assert found["modes"] == "Modes(v0=False, v1=True, switch=True)"
    assert found["switch"] == "1"


def test_a_kept_tree_cannot_be_written_to_by_a_child(evaluated: Evaluated) -> None:
    kinds = {"bubblewrap": "Read-only file system", "plain": "none"}
    first = told(evaluated("python"))
    assert first["wall"] == kinds[sandbox_kind()]
    if first["wall"] != "none":
        assert told(evaluated("python"))["y"] == "commit"


def sandbox_kind() -> str:
    return "plain" if sandbox.bubblewrap.find() is None else "bubblewrap"


def test_a_mode_that_the_commit_lost_is_unsupported(evaluated: Evaluated) -> None:
    assert told(evaluated("main", "V0"))["switch"] == "0"
    ending = evaluated("python", "V0")
    assert isinstance(ending, Failed)
    assert (ending.kind, ending.reason) == (FailureKind.UNSUPPORTED, "mode_unsupported")
    assert "vllm/engine/llm_engine.py defines no LLMEngine" in ending.message


def test_a_commit_that_is_built_in_full_has_nothing_of_the_releases(evaluated: Evaluated) -> None:
    refused = evaluated("compiled")
    assert isinstance(refused, Failed)
    assert (refused.kind, refused.reason) == (FailureKind.UNSUPPORTED, "compiled_sources_changed")
    found = told(evaluated("compiled", build=["sh", "build.sh", "{out}"], build_seconds=60))
    assert (found["y"], found["compiled"], found["changed"]) == ("built", "the commit's", None)
    assert "/engines/built-" in found["same"]
