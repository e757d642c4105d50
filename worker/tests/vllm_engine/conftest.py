"""A vLLM lane's spec, as a worker writes it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from driftline_worker.children.vllm_engine.spec import VllmSpec, read_spec

MakeSpec = Callable[..., VllmSpec]


@pytest.fixture
def make_spec(tmp_path: Path) -> MakeSpec:
    def make(mode: str = "V1", *, arguments: dict[str, Any] | None = None, pins: dict[str, str] | None = None,
             **changes: Any) -> VllmSpec:  # fmt: skip
        lane = {
            "name": "canary vllm", "model": {"name": "canary"}, "engine": "vllm", "mode": mode, "backend": "vllm",
            "task": {"name": "gsm8k_canary"}, "engine_arguments": arguments or {"dtype": "float32"}, "gpu_type": None,
        }  # fmt: skip
        places = {name: f"/{name}" for name in ("import_dir", "model_path", "task_yaml", "train_path", "test_path")}
        environment = {"name": "an environment", "vllm": "0.32.0", "pins": pins or {}, "sha256": "0" * 64}
        raw = {"lane": lane, **places, "doc_ids": [3, 1], "threads": 2, "layout": "mamba2_varlen",
               "environment": environment}  # fmt: skip
        file = tmp_path / "spec.json"
        file.write_text(json.dumps(raw | changes))
        return read_spec(file)

    return make
