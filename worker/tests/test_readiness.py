"""Everything that an evaluation lacks is named at once, before anything is checked out or started."""

import hashlib
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from driftline.contracts.jobs import CommitSource, EvaluateSpec
from driftline.contracts.lane import EngineEnvironment, Lane, ModelSource
from driftline.contracts.words import Engine, FailureKind, Layout
from driftline_worker.bench import Bench
from driftline_worker.ending import CannotRun, Failed
from driftline_worker.engine_fit import driver_fault, environment_faults
from driftline_worker.gpu_memory import GpuMemory
from driftline_worker.readiness import Gpus, refuse_unready
from driftline_worker.sandbox import Sandbox
from driftline_worker.settings import ChildSettings
from driftline_worker.stop_request import StopRequest

CANARY = Path(__file__).resolve().parents[2] / "canary" / "model"
WANTED = EngineEnvironment(
    name="an environment", vllm="0.10.0", python="no/python", pins={"torch": "2.7.1", "lm_eval": "0.4.13"}
)
FITTING = {"vllm": "0.10.0", "torch": "2.7.1", "lm-eval": "0.4.13", "nvidia-cuda-runtime-cu12": "12.6.77"}
NEEDS = ("numpy", "torch==2.7.1", "torchaudio==2.7.1")
BUSY = Gpus(memory=lambda: [GpuMemory(10, 1000)], driver=lambda: "535.183.01")

Look = Callable[..., str]


@pytest.fixture
def ready(tmp_path: Path, lane: Lane) -> Lane:
    """A vLLM lane whose model, task and data are there; its environment is not."""
    root = tmp_path / "assets"
    shutil.copytree(CANARY, root / "canary" / "model")
    for name in ("canary/tasks/task.yaml", "canary/data/train.jsonl", "canary/data/test.jsonl"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("x\n")
    right = hashlib.sha256(b"x\n").hexdigest()
    task = lane.task.model_copy(update={"train_sha256": right, "test_sha256": right})
    return lane.model_copy(update={"task": task, "engine": Engine.VLLM, "backend": "vllm", "runs_in": WANTED})


@pytest.fixture
def settings(tmp_path: Path) -> ChildSettings:
    return ChildSettings(data_dir=tmp_path / "data", assets_root=tmp_path / "assets", allow_local_repositories=True)


@pytest.fixture
def look(settings: ChildSettings) -> Callable[..., CannotRun]:
    def at(lane: Lane, gpus: Gpus | None = None, **changes: Any) -> CannotRun:
        with pytest.raises(CannotRun) as refusal:
            refuse_unready(lane, settings.model_copy(update=changes), gpus)
        return refusal.value

    return at


def test_all_that_is_missing_is_named_in_one_refusal(
    ready: Lane, look: Callable[..., CannotRun], tmp_path: Path
) -> None:
    model = tmp_path / "assets" / "canary" / "model"
    (model / "tokenizer_config.json").write_text('{"auto_map": {"AutoTokenizer": ["t.T", null]}}')
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    lane = ready.model_copy(update={"engine_arguments": {"dtype": "int3"}, "gpu_type": "H100"})
    found = look(lane, BUSY, gpu_type="H100")
    assert (found.kind, found.reason) == (FailureKind.PERMANENT, "environment_missing")
    said = str(found)
    assert said.startswith("6 things are not ready: (1) environment_missing: ")
    for words in (
        "wrong_dtype: lane canary V1: dtype 'int3'", "weights_broken: model canary: model.safetensors",
        "remote_code_missing: model canary needs t.py", "remote_code_refused: ", "gpu_busy: lane canary V1 needs 90% of 1 GPUs",
    ):  # fmt: skip
        assert words in said


def test_files_and_data_that_are_missing_are_named_together(
    ready: Lane, look: Callable[..., CannotRun], tmp_path: Path
) -> None:
    root = tmp_path / "assets" / "canary"
    (root / "data" / "test.jsonl").unlink()
    (root / "data" / "train.jsonl").write_text("y\n")
    for name in ("tokenizer.json", "tokenizer_config.json", "model.safetensors"):
        (root / "model" / name).unlink(missing_ok=True)
    found = look(ready.model_copy(update={"engine": Engine.HF, "runs_in": None, "backend": "torch"}))
    assert found.reason == "dataset_changed"
    assert "dataset_missing: the question file canary/data/test.jsonl" in str(found)
    assert "model_missing: model canary: " in str(found)
    assert "has no weights and no tokenizer; put the model there" in str(found)


def test_a_lane_for_a_gpu_that_is_not_there(ready: Lane, look: Callable[..., CannotRun]) -> None:
    lane = ready.model_copy(update={"engine": Engine.HF, "runs_in": None, "backend": "torch", "gpu_type": "H100"})
    found = look(lane)
    assert (found.kind, found.reason) == (FailureKind.PERMANENT, "no_gpu")
    assert str(found) == "lane canary V1 wants a H100, and this worker has no GPU"
    assert "has a A100" in str(look(lane, gpu_type="A100"))


def test_nothing_is_checked_out_for_a_job_that_cannot_run(
    ready: Lane, settings: ChildSettings, evaluate_spec: EvaluateSpec, usual_sandbox: Sandbox
) -> None:
    source = CommitSource(url="/nowhere", sha="0" * 40, layout=Layout.VLLM, kernel_path="vllm")
    gone = ready.model_copy(update={"model": ModelSource(name="canary", path="canary/gone")})
    spec = evaluate_spec.model_copy(update={"lane": gone, "source": source})
    ending = Bench(settings, usual_sandbox).run(spec, None, StopRequest())  # type: ignore[arg-type]
    assert isinstance(ending, Failed)
    assert "model_missing: model canary: " in ending.message
    assert "has no files at all" in ending.message
    assert "environment_missing" in ending.message
    assert not settings.mirrors.exists()


def test_an_environment_is_probed_for_what_its_vllm_needs(ready: Lane, look: Callable[..., CannotRun]) -> None:
    """This test's own interpreter has none of it."""
    found = look(ready, engine_pythons={WANTED.name: Path(sys.executable)})
    assert found.reason == "environment_mismatch"
    assert "environment 'an environment' promises vllm 0.10.0, installed is none" in str(found)
    assert "promises torch 2.7.1, installed is none" in str(found)


def test_an_environment_that_fits_and_those_that_do_not(ready: Lane) -> None:
    def said(changes: dict[str, str], lane: Lane = ready) -> list[str]:
        return [str(fault) for fault in environment_faults(lane, WANTED, FITTING | changes, NEEDS)]

    assert said({}) == said({"torch": "2.7.1+cu126"}) == []
    assert said({"torch": "2.8.0"}) == [
        "environment 'an environment' promises torch 2.7.1, installed is 2.8.0",
        "environment 'an environment' has torch 2.8.0, its vLLM 0.10.0 was built for 2.7.1",
    ]
    asks = ready.model_copy(update={"environment": {"VLLM_ATTENTION_BACKEND": "FLASHINFER"}})
    assert said({}, asks) == [
        "lane canary V1 sets VLLM_ATTENTION_BACKEND=FLASHINFER, and environment 'an environment' has no flashinfer-python"
    ]
    assert said({"flashinfer-python": "0.2.8"}, asks) == []


@pytest.mark.parametrize(
    ("runtime", "driver", "fault"),
    [
        ("12.6.77", "535.183.01", None), ("12.6.77", "525.60.13", None), ("12.6.77", None, None),
        ("12.6.77", "470.256.02", "the driver 470.256.02 of this worker is too old for CUDA 12.6.77"),
        ("13.0.96", "570.124.06", "install 580.65.06 or newer"), ("99.0", "570.1", None),
    ],
)  # fmt: skip
def test_a_driver_that_is_too_old_for_the_environment(runtime: str, driver: str | None, fault: str | None) -> None:
    found = driver_fault({"nvidia-cuda-runtime-cu12": runtime}, driver)
    assert (found is None) is (fault is None)
    if fault is not None and found is not None:
        assert found.reason == "driver_mismatch"
        assert fault in str(found)
