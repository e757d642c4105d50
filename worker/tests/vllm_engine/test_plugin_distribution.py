"""The plugin's folder: Python finds its entry point there, and the engine's processes report through one file."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from driftline_worker.children.hf_engine.refusal import Refusal
from driftline_worker.children.vllm_engine.rehearsal import served_operators
from driftline_worker.children.vllm_plugin.distribution import Call, make_distribution, reported_calls

OPERATORS = ("ssd_prefill", "causal_conv1d_prefill", "causal_conv1d_update", "selective_state_update")


def test_an_engine_process_finds_the_entry_point(tmp_path: Path) -> None:
    folder = make_distribution(tmp_path / "plugin")
    code = (
        "from importlib.metadata import entry_points as e; [p] = e(group='vllm.general_plugins'); print(p.name, p.value);"
        "import driftline_worker.children.vllm_plugin.signatures as s; print(s.__file__)"
    )
    answer = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(folder)!r}); {code}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    named, file = answer.stdout.splitlines()
    assert named == "mamba2_varlen driftline_worker.children.vllm_plugin.registration:register"
    assert file.startswith(str(folder))


def test_each_operator_is_told_once_and_by_name(tmp_path: Path) -> None:
    report = tmp_path / "calls.jsonl"
    assert reported_calls(report) == ()
    calls = [Call(name, f"mamba2_varlen.torch_backend ({name})", "vllm.ops.x") for name in OPERATORS]
    report.write_text("".join(json.dumps(vars(call)) + "\n" for call in [*calls, *calls]))
    served = served_operators(reported_calls(report))
    assert served["ssd_prefill"] == "mamba2_varlen.torch_backend (ssd_prefill), in place of vllm.ops.x"
    assert served["rms_norm_gated"].startswith("none")


def test_a_plugin_that_served_nothing_is_an_engine_mismatch() -> None:
    with pytest.raises(Refusal, match="did not call causal_conv1d_update, selective_state_update") as refusal:
        served_operators(tuple(Call(name, "m", "v") for name in OPERATORS[:2]))
    assert refusal.value.reason == "engine_mismatch"
