"""What a spec may hold, and how a wrong one is refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest
from driftline_worker.children.hf_engine.spec import read_spec
from driftline_worker.children.kernel_child import Refusal


def test_the_mode_decides_the_prefill_chunk(assets: Any, tmp_path: Path) -> None:
    file = tmp_path / "spec.json"
    seen = {}
    for mode in ("V0", "V1"):
        file.write_text(json.dumps(assets.spec(mode, prefill_chunk_size=32)))
        lane = read_spec(file).lane
        seen[mode] = (lane.prefill_chunk, lane.mode_words)
    assert seen == {"V0": (None, "V0 (hf: whole prompt)"), "V1": (32, "V1 (hf: prefill in chunks of 32)")}


def test_the_lanes_batch_size_wins(assets: Any, tmp_path: Path) -> None:
    file = tmp_path / "spec.json"
    raw = assets.spec()
    file.write_text(json.dumps(raw))
    assert read_spec(file).batch_size == 3
    raw["lane"]["engine_arguments"]["batch_size"] = 7
    file.write_text(json.dumps(raw))
    assert read_spec(file).batch_size == 7


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"doc_ids": [1, 1]}, "none twice"),
        ({"block": 0}, "block must be"),
        ({"prefill_chunk_size": 1}, "prefill_chunk_size must be a whole number of at least 2"),
        ({"gpu_memory": 0.9}, "gpu_memory"),
        ({"dtype": "int8"}, "dtype must be one of"),
        ({"import_dir": "kernels"}, "import_dir must be an absolute path"),
        ({"max_gen_toks": "many"}, "max_gen_toks must be"),
    ],
    ids=str,
)
def test_what_does_not_fit_is_refused_by_name(assets: Any, tmp_path: Path, change: Any, told: str) -> None:
    file = tmp_path / "spec.json"
    file.write_text(json.dumps(assets.spec(**change)))
    with pytest.raises(Refusal, match=told) as refusal:
        read_spec(file)
    assert (refusal.value.kind, refusal.value.reason) == ("permanent", "bad_spec")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"lane": {"engine": "vllm", "mode": "V1"}}'], ids=repr)
def test_garbage_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "spec.json"
    file.write_text(text)
    with pytest.raises(Refusal):
        read_spec(file)
