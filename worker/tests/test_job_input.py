"""What a child is given: the kernels' folder only, verified files, and a spec that says what the job says."""

import hashlib
import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from driftline.contracts.jobs import BuildSpec, CheckSpec, CommitSource, EvaluateSpec
from driftline.contracts.lane import Lane
from driftline.contracts.words import FailureKind
from driftline_worker.assets import LaneFiles
from driftline_worker.checkout import check_out
from driftline_worker.child_spec import child_spec
from driftline_worker.ending import CannotRun
from driftline_worker.scratch import remove, remove_leftovers, scratch_folder
from driftline_worker.settings import ChildSettings

MakeSettings = Callable[..., ChildSettings]


@pytest.fixture
def settings(tmp_path: Path) -> MakeSettings:
    def make(**changes: Any) -> ChildSettings:
        fields: dict[str, Any] = {"data_dir": tmp_path / "data", "assets_root": tmp_path / "assets"}
        return ChildSettings(**(fields | changes))

    return make


@pytest.fixture
def filled(tmp_path: Path, lane: Lane) -> Lane:
    """The lane with all its files in place."""
    files = {
        "canary/tasks/task.yaml": "task: x\n", "canary/data/train.jsonl": '{"q": 1}\n',
        "canary/data/test.jsonl": '{"q": 2}\n', "canary/model/config.json": "{}", "canary/model/model.safetensors": "w",
        "canary/model/tokenizer.json": "{}",
    }  # fmt: skip
    for name, text in files.items():
        path = tmp_path / "assets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    sums = {kind: hashlib.sha256(files[f"canary/data/{kind}.jsonl"].encode()).hexdigest() for kind in ("train", "test")}
    task = lane.task.model_copy(update={"train_sha256": sums["train"], "test_sha256": sums["test"]})
    return lane.model_copy(update={"task": task})


def refusal(find: Callable[[], object]) -> CannotRun:
    with pytest.raises(CannotRun) as caught:
        find()
    return caught.value


def test_only_the_kernels_folder_is_checked_out(source: CommitSource, tmp_path: Path) -> None:
    folder = check_out(source, mirrors=tmp_path / "m", import_dir=tmp_path / "import", allow_local=True)
    assert folder == tmp_path / "import" / "mamba2_varlen"
    files = sorted(str(path.relative_to(tmp_path / "import")) for path in (tmp_path / "import").rglob("*"))
    assert files == ["mamba2_varlen", "mamba2_varlen/__init__.py"]


@pytest.mark.parametrize(
    ("change", "kind", "reason"),
    [
        ({"sha": "f" * 40}, FailureKind.PERMANENT, "unknown_commit"),
        ({"kernel_path": "nowhere"}, FailureKind.PERMANENT, "no_kernels"),
        ({"kernel_path": "../../etc"}, FailureKind.PERMANENT, "bad_ref"),
        ({"url": "ext::sh -c id"}, FailureKind.PERMANENT, "bad_url"),
        ({"url": "/nowhere/at/all"}, FailureKind.TRANSIENT, "unreachable_repository"),
    ],
)
def test_what_cannot_be_checked_out(
    source: CommitSource, tmp_path: Path, change: dict[str, str], kind: FailureKind, reason: str
) -> None:
    wrong = source.model_copy(update=change)
    error = refusal(lambda: check_out(wrong, mirrors=tmp_path / "m", import_dir=tmp_path / "import", allow_local=True))
    assert (error.kind, error.reason) == (kind, reason)


def test_local_repositories_only_where_allowed(source: CommitSource, tmp_path: Path) -> None:
    error = refusal(lambda: check_out(source, mirrors=tmp_path / "m", import_dir=tmp_path / "i", allow_local=False))
    assert error.reason == "bad_url"


def test_specs_of_builds_and_checks(build_spec: BuildSpec, check_spec: CheckSpec, settings: MakeSettings) -> None:
    here = Path("/import")
    built = child_spec(build_spec, import_dir=here, threads=1, settings=settings())
    assert json.loads(built.text) == {
        "import_dir": "/import", "layout": "mamba2_varlen", "architectures": [80, 90, 100], "tritons": [],
        "processes": 1,
    }  # fmt: skip
    checked = json.loads(child_spec(check_spec, import_dir=here, threads=1, settings=settings()).text)
    assert checked == {
        "import_dir": "/import", "layout": "mamba2_varlen", "backends": ["torch", "triton"], "device": "cpu",
        "processes": 1,
    }  # fmt: skip
    on_gpu = child_spec(check_spec, import_dir=here, threads=8, settings=settings(gpu_type="H100"))
    assert (json.loads(on_gpu.text)["device"], json.loads(on_gpu.text)["processes"]) == ("cuda", 8)


def test_the_spec_of_an_evaluation(
    evaluate_spec: EvaluateSpec, filled: Lane, settings: MakeSettings, tmp_path: Path
) -> None:
    lane = filled.model_copy(update={"environment": {"VLLM_USE_V1": "1"}})
    spec = evaluate_spec.model_copy(update={"lane": lane})
    made = child_spec(spec, import_dir=Path("/import"), threads=2, settings=settings())
    values = json.loads(made.text)
    assets = tmp_path / "assets" / "canary"
    assert values.pop("lane") == lane.model_dump(mode="json")
    assert values == {
        "import_dir": "/import", "model_path": str(assets / "model"), "task_yaml": str(assets / "tasks" / "task.yaml"),
        "train_path": str(assets / "data" / "train.jsonl"), "test_path": str(assets / "data" / "test.jsonl"),
        "doc_ids": [7, 2, 5], "block": 100, "batch_size": 16, "threads": 2,
    }  # fmt: skip
    assert made.environment == {"VLLM_USE_V1": "1"}
    assert {assets / "model", assets / "tasks", assets / "data" / "test.jsonl"} <= set(made.readable)


@pytest.mark.parametrize(
    "name", ["LD_PRELOAD", "PYTHONPATH", "PATH", "HF_TOKEN", "TRITON_CACHE_DIR", "VLLM_x", "TORCH_HOME"]
)
def test_a_lane_cannot_choose_programs_or_folders(
    evaluate_spec: EvaluateSpec, filled: Lane, settings: MakeSettings, name: str
) -> None:
    spec = evaluate_spec.model_copy(update={"lane": filled.model_copy(update={"environment": {name: "x"}})})
    error = refusal(lambda: child_spec(spec, import_dir=Path("/i"), threads=1, settings=settings()))
    assert error.reason == "environment_refused"
    assert name in str(error)


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("canary/data/test.jsonl", '{"q": 3}\n', "dataset_changed"),
        ("canary/data/train.jsonl", "", "dataset_changed"),
        ("canary/data/train.jsonl", None, "dataset_missing"),
        ("canary/tasks/task.yaml", None, "dataset_missing"),
        ("canary/model/config.json", None, "model_missing"),
        ("canary/model/model.safetensors", None, "model_missing"),
        ("canary/model/tokenizer.json", None, "model_missing"),
    ],
)
def test_files_that_are_missing_or_changed_are_named(
    filled: Lane, tmp_path: Path, file: str, text: str | None, reason: str
) -> None:
    path = tmp_path / "assets" / file
    path.unlink() if text is None else path.write_text(text)
    error = refusal(lambda: LaneFiles.find(filled, assets_root=tmp_path / "assets", hub_cache=None))
    assert (error.kind, error.reason) == (FailureKind.PERMANENT, reason)
    assert path.name in str(error) or "model" in str(error)


def test_a_model_of_a_hub_is_the_pinned_snapshot(filled: Lane, tmp_path: Path) -> None:
    snapshot = tmp_path / "hub" / "models--ibm--tiny" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    for name in ("config.json", "model-00001.safetensors", "tokenizer.json"):
        (snapshot / name).write_text("{}")
    (tmp_path / "hub" / "models--ibm--tiny" / "refs").mkdir()
    (tmp_path / "hub" / "models--ibm--tiny" / "refs" / "main").write_text("abc")
    model = filled.model.model_copy(update={"path": None, "hub_id": "ibm/tiny"})
    lane = filled.model_copy(update={"model": model})
    files = LaneFiles.find(lane, assets_root=tmp_path / "assets", hub_cache=tmp_path / "hub")
    assert files.model == snapshot
    assert tmp_path / "hub" / "models--ibm--tiny" in files.readable, "a snapshot is links to blobs beside it"
    error = refusal(lambda: LaneFiles.find(lane, assets_root=tmp_path / "assets", hub_cache=None))
    assert "DRIFTLINE_WORKER_HUB_CACHE" in str(error)


def test_scratch_folders_of_killed_workers_go_and_those_in_use_stay(tmp_path: Path) -> None:
    with scratch_folder(tmp_path, "a") as used:
        (tmp_path / "left" / "own").mkdir(parents=True)
        (tmp_path / "left" / "lock").write_text("")
        (tmp_path / ".going-half" / "own").mkdir(parents=True)  # its lock went first, then its worker was killed
        remove_leftovers(tmp_path)
        assert list(tmp_path.iterdir()) == [used.root]
    assert list(tmp_path.iterdir()) == []


def test_a_folder_whose_permissions_were_taken_away_goes_too(tmp_path: Path) -> None:
    folder = tmp_path / "x" / "y"
    folder.mkdir(parents=True)
    (folder / "z").write_text("z")
    os.symlink("/etc", folder / "link")  # noqa: PTH211
    folder.chmod(0)
    (tmp_path / "x").chmod(stat.S_IRUSR)
    remove(tmp_path / "x")
    assert list(tmp_path.iterdir()) == []
