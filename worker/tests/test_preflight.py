"""What a model's folder lacks is named before an engine is started."""

import json
import shutil
import struct
from pathlib import Path

import pytest
from driftline.contracts.lane import Lane
from driftline.contracts.words import Engine
from driftline_worker.ending import CannotRun
from driftline_worker.preflight import refuse_unready, remote_code, safetensors_fault, weight_faults

CANARY = Path(__file__).resolve().parents[2] / "canary" / "model"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copytree(CANARY, tmp_path / "model"))


@pytest.fixture
def vllm_lane(lane: Lane) -> Lane:
    return lane.model_copy(update={"engine": Engine.VLLM, "engine_arguments": {"dtype": "float32"}})


def test_the_canary_is_ready(vllm_lane: Lane, model: Path) -> None:
    refuse_unready(vllm_lane, model)


@pytest.mark.parametrize(
    ("keep", "fault"),
    [(7_000_000, "has 7000000 bytes, its header tells"), (100, "ends inside its header"), (3, "no header")],
)
def test_a_truncated_weights_file_is_told(vllm_lane: Lane, model: Path, keep: int, fault: str) -> None:
    weights = model / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:keep])
    with pytest.raises(CannotRun, match=fault) as refusal:
        refuse_unready(vllm_lane, model)
    assert refusal.value.reason == "weights_broken"


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
    with pytest.raises(CannotRun, match="'float12' is none of auto, float32") as refusal:
        refuse_unready(wrong, model)
    assert refusal.value.reason == "wrong_dtype"


def test_a_tokenizer_of_code_must_be_there_and_trusted(vllm_lane: Lane, model: Path) -> None:
    entry = {"auto_map": {"AutoTokenizer": ["tokenization_plamo.Plamo2Tokenizer", None]}}
    (model / "tokenizer_config.json").write_text(json.dumps(entry))
    assert remote_code(model) == {"tokenization_plamo.py"}
    with pytest.raises(CannotRun, match=r"needs tokenization_plamo\.py") as refusal:
        refuse_unready(vllm_lane, model)
    assert refusal.value.reason == "remote_code_missing"
    (model / "tokenization_plamo.py").write_text("")
    with pytest.raises(CannotRun, match="trust_remote_code = true") as refusal:
        refuse_unready(vllm_lane, model)
    assert refusal.value.reason == "remote_code_refused"
    arguments = {"dtype": "float32", "trust_remote_code": True}
    refuse_unready(vllm_lane.model_copy(update={"engine_arguments": arguments}), model)
