"""The kernels under the plamo2 canary's code, which trust_remote_code loads: same tokens, and the state is really carried."""

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from driftline_worker.children.hf_engine.granite_patch import install
from driftline_worker.children.hf_engine.kernels_loader import load_kernels
from driftline_worker.children.kernel_child import Refusal
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedModel

ROOT = Path(__file__).resolve().parents[3]
KERNELS = ROOT / "kernels" / "src"
REPLACED = ("causal_conv1d_fn", "causal_conv1d_update", "mamba2_chunk_scan", "mamba2_selective_state_update")
LENGTHS, NEW = (49, 33, 7, 1, 20), 8
CONFIG = {
    "model_type": "plamo2", "vocab_size": 64, "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 3,
    "mamba_step": 4, "num_attention_heads": 2, "hidden_size_per_head": 16, "mamba_num_heads": 4, "mamba_d_state": 16,
    "mamba_chunk_size": 16, "initializer_range": 0.3, "pad_token_id": 1, "eos_token_id": 0,
    "auto_map": {
        "AutoConfig": "configuration_plamo2.Plamo2Config", "AutoModelForCausalLM": "modeling_plamo2.Plamo2ForCausalLM",
    },
}  # fmt: skip


@pytest.fixture
def model(tmp_path: Path, unpatched: None) -> Iterator[PreTrainedModel]:
    """Random weights; heads remember a whole prompt, and an answer depends on what they remember."""
    folder = tmp_path / "plamo2"
    shutil.copytree(ROOT / "canary" / "plamo2", folder, ignore=shutil.ignore_patterns("*.json", "*.safetensors"))
    (folder / "config.json").write_text(json.dumps(CONFIG))
    torch.manual_seed(5)
    config = AutoConfig.from_pretrained(folder, trust_remote_code=True)
    built = AutoModelForCausalLM.from_config(config, trust_remote_code=True).eval()
    with torch.no_grad():
        for layer in built.model.layers.layers[:2]:
            layer.mixer.A_log.fill_(-4.0)
            layer.mixer.D.zero_()
    modeling = sys.modules[type(built).__module__]
    before = {name: getattr(modeling, name) for name in REPLACED}
    yield built
    for name, function in before.items():
        setattr(modeling, name, function)


def generated(model: PreTrainedModel, rows: list[list[int]], chunk: int | None) -> list[list[int]]:
    longest = max(map(len, rows))
    tokens = torch.tensor([[1] * (longest - len(row)) + row for row in rows])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    schedule = {} if chunk is None else {"prefill_chunk_size": chunk}
    with torch.inference_mode():
        out = model.generate(
            input_ids=tokens, attention_mask=mask, max_new_tokens=NEW, min_new_tokens=NEW, do_sample=False, **schedule
        )
    new: list[list[int]] = out[:, longest:].tolist()
    return new


def prompts() -> list[list[int]]:
    generator = torch.Generator().manual_seed(11)
    return [torch.randint(2, 64, (length,), generator=generator).tolist() for length in LENGTHS]


def test_batched_and_chunked_equals_the_unpatched_model_prompt_by_prompt(model: PreTrainedModel) -> None:
    alone = [generated(model, [row], None)[0] for row in prompts()]
    assert len({tuple(row) for row in alone}) == len(LENGTHS)
    operators = install(model, load_kernels(KERNELS), "torch")
    for chunk in (None, 5, 16, 64):
        assert generated(model, prompts(), chunk) == alone, chunk
    calls = operators.calls
    assert calls.by_operator["ssd_prefill"] == 2 * calls.metadata_builds
    assert calls.by_operator["selective_state_update"] >= 2 * 4 * (NEW - 1)
    assert calls.carried_scans > 0


def test_kernels_that_drop_the_carried_state_change_chunked_prefill_only(
    model: PreTrainedModel, changed_kernels: Callable[[str], Path]
) -> None:
    alone = [generated(model, [row], None)[0] for row in prompts()]
    dropping = (
        "_right = ssd_prefill\n"
        "def ssd_prefill(*args, initial_states=None, **options):\n"
        "    return _right(*args, **options)\n"
    )
    install(model, load_kernels(changed_kernels(dropping)), "torch")
    assert generated(model, prompts(), None) == alone
    assert generated(model, prompts(), 16)[:2] != alone[:2]


def test_a_module_without_the_functions_is_refused(model: PreTrainedModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(sys.modules[type(model).__module__], "mamba2_chunk_scan")
    with pytest.raises(Refusal) as refusal:
        install(model, load_kernels(KERNELS), "torch")
    assert refusal.value.reason == "model_unsupported"
    assert "mamba2_chunk_scan" in str(refusal.value)


def test_another_family_is_refused_by_name(unpatched: None) -> None:
    other: Any = torch.nn.Linear(1, 1)
    with pytest.raises(Refusal) as refusal:
        install(other, load_kernels(KERNELS), "torch")
    assert "Plamo2ForCausalLM, got Linear" in str(refusal.value)
