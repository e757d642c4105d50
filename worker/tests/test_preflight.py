"""What a model's folder lacks is named before an engine is started."""

import json
import shutil
import struct
from pathlib import Path
from zipfile import ZipFile

import pytest
from driftline.contracts.lane import Lane
from driftline.contracts.words import Engine
from driftline_worker.preflight import json_faults, model_faults, remote_code, safetensors_fault, weight_faults

CANARY = Path(__file__).resolve().parents[2] / "canary" / "model"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copytree(CANARY, tmp_path / "model"))


@pytest.fixture
def vllm_lane(lane: Lane) -> Lane:
    return lane.model_copy(update={"engine": Engine.VLLM, "engine_arguments": {"dtype": "float32"}})


def test_the_canary_is_ready(vllm_lane: Lane, model: Path) -> None:
    assert list(model_faults(vllm_lane, model)) == []


@pytest.mark.parametrize(
    ("keep", "fault"),
    [(7_000_000, "has 7000000 bytes, its header tells"), (100, "ends inside its header"), (3, "no header")],
)
def test_a_truncated_weights_file_is_told(vllm_lane: Lane, model: Path, keep: int, fault: str) -> None:
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:keep])
    (found,) = model_faults(vllm_lane, model)
    assert found.reason == "weights_broken"
    assert fault in str(found)


def test_a_file_that_is_no_safetensors_file(tmp_path: Path) -> None:
    page = tmp_path / "model.safetensors"
    page.write_bytes(struct.pack("<Q", 4) + b"<ht>" + b"ml")
    assert safetensors_fault(page) == "has a header that is no JSON"


def test_a_missing_shard_is_named(model: Path) -> None:
    shards = {"a": "model.safetensors", "b": "model-00002-of-00002.safetensors"}
    (model / "model.safetensors.index.json").write_text(json.dumps({"weight_map": shards}))
    assert list(weight_faults(model)) == ["shard model-00002-of-00002.safetensors is missing"]


def test_a_dtype_that_is_none(vllm_lane: Lane, model: Path) -> None:
    wrong = vllm_lane.model_copy(update={"engine_arguments": {"dtype": "float12"}})
    (found,) = model_faults(wrong, model)
    assert found.reason == "wrong_dtype"
    assert "'float12' is none of auto, float32" in str(found)


def test_a_tokenizer_of_code_must_be_there_and_trusted(vllm_lane: Lane, model: Path) -> None:
    entry = {"auto_map": {"AutoTokenizer": ["tokenization_plamo.Plamo2Tokenizer", None]}}
    (model / "tokenizer_config.json").write_text(json.dumps(entry))
    assert remote_code(model) == {"tokenization_plamo.py"}
    missing, refused = model_faults(vllm_lane, model)
    assert (missing.reason, refused.reason) == ("remote_code_missing", "remote_code_refused")
    assert "needs tokenization_plamo.py" in str(missing)
    (model / "tokenization_plamo.py").write_text("")
    (refused,) = model_faults(vllm_lane, model)
    assert "trust_remote_code = true" in str(refused)
    arguments = {"dtype": "float32", "trust_remote_code": True}
    assert not list(model_faults(vllm_lane.model_copy(update={"engine_arguments": arguments}), model))


def test_weights_of_torch_that_end_too_soon_are_told(model: Path) -> None:
    with ZipFile(model / "pytorch_model-00001-of-00003.bin", "w") as whole:
        whole.writestr("archive/data.pkl", bytes(5000))
    assert list(weight_faults(model)) == []
    cut = (model / "pytorch_model-00001-of-00003.bin").read_bytes()[:4000]
    (model / "pytorch_model-00001-of-00003.bin").write_bytes(cut)
    (model / "pytorch_model-00002-of-00003.bin").write_bytes(b"")
    index = {"weight_map": {"a": "pytorch_model-00001-of-00003.bin", "b": "pytorch_model-00003-of-00003.bin"}}
    (model / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    assert list(weight_faults(model)) == [
        "shard pytorch_model-00003-of-00003.bin is missing",
        "pytorch_model-00001-of-00003.bin has 4000 bytes and no end",
        "pytorch_model-00002-of-00003.bin has 0 bytes and no end",
    ]


def test_a_tokenizer_that_ends_too_soon_is_told(vllm_lane: Lane, model: Path) -> None:
    tokenizer = model / "tokenizer.json"
    tokenizer.write_bytes(tokenizer.read_bytes()[:500])
    assert list(json_faults(model)) == ["tokenizer.json is no whole JSON file (500 bytes)"]
    (found,) = model_faults(vllm_lane, model)
    assert "tokenizer.json is no whole JSON file (500 bytes); fetch it anew" in str(found)
