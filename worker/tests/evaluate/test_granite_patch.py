"""The kernels under transformers' model: same tokens, same states, whatever the batch and the prefill chunk."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from driftline_worker.children.hf_engine.granite_patch import GraniteOperators, install
from driftline_worker.children.hf_engine.kernels_loader import OPERATORS, load_kernels, serving_module
from driftline_worker.children.kernel_child import Refusal
from torch import Tensor
from transformers import GraniteMoeHybridForCausalLM

ROOT = Path(__file__).resolve().parents[3]
KERNELS = ROOT / "kernels" / "src"
LENGTHS = (49, 33, 7, 1, 48, 20)
"""49 and 33 end chunks of 16 with one token alone, in the decode step; 7 and 1 have chunks of padding."""

NEW = 10


def prompts() -> list[list[int]]:
    generator = torch.Generator().manual_seed(11)
    return [torch.randint(2, 300, (length,), generator=generator).tolist() for length in LENGTHS]


def left_padded(rows: list[list[int]]) -> tuple[Tensor, Tensor]:
    longest = max(map(len, rows))
    tokens = torch.tensor([[1] * (longest - len(row)) + row for row in rows])
    mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
    return tokens, mask


def generated(model: GraniteMoeHybridForCausalLM, rows: list[list[int]], chunk: int | None) -> list[list[int]]:
    tokens, mask = left_padded(rows)
    schedule = {} if chunk is None else {"prefill_chunk_size": chunk}
    with torch.inference_mode():
        out = model.generate(
            input_ids=tokens, attention_mask=mask, max_new_tokens=NEW, min_new_tokens=NEW, do_sample=False, **schedule
        )
    new: list[list[int]] = out[:, tokens.shape[1] :].tolist()
    return new


@pytest.fixture
def model(assets: Any) -> GraniteMoeHybridForCausalLM:
    return GraniteMoeHybridForCausalLM.from_pretrained(assets.model, dtype=torch.float32).eval()


@pytest.fixture
def alone(model: GraniteMoeHybridForCausalLM, unpatched: None) -> list[list[int]]:
    """What transformers itself generates for each prompt on its own."""
    return [generated(model, [row], None)[0] for row in prompts()]


def patched(model: GraniteMoeHybridForCausalLM, folder: Path = KERNELS) -> GraniteOperators:
    return install(model, load_kernels(folder), "torch")


@pytest.mark.parametrize("chunk", [None, 2, 5, 16, 48, 64])
def test_batched_and_chunked_equals_transformers_prompt_by_prompt(
    model: GraniteMoeHybridForCausalLM, alone: list[list[int]], chunk: int | None
) -> None:
    patched(model)
    assert generated(model, prompts(), chunk) == alone
    assert len({tuple(row) for row in alone}) == len(LENGTHS)  # else the comparison says little


def test_unbatched_with_kernels_equals_transformers(model: GraniteMoeHybridForCausalLM, alone: list[list[int]]) -> None:
    patched(model)
    assert [generated(model, [row], 16)[0] for row in prompts()] == alone


@pytest.mark.parametrize("columns", [(49,), (16, 16, 16, 1), (3, 46)], ids=str)
def test_logits_and_cached_states_are_transformers_own(
    model: GraniteMoeHybridForCausalLM, unpatched: None, columns: tuple[int, ...]
) -> None:
    tokens, mask = left_padded(prompts())

    def forwards() -> tuple[Tensor, Any]:
        cache, logits, begin = None, [], 0
        for width in columns:
            with torch.inference_mode():
                out = model(
                    input_ids=tokens[:, begin : begin + width],
                    attention_mask=mask[:, : begin + width],
                    past_key_values=cache,
                    use_cache=True,
                )
            cache, begin = out.past_key_values, begin + width
            logits.append(out.logits)
        return torch.cat(logits, dim=1)[mask.bool()], cache

    expected, expected_cache = forwards()
    patched(model)
    actual, cache = forwards()
    torch.testing.assert_close(actual, expected, rtol=0, atol=1e-4)
    for layer in (1, 2):
        for states in ("conv_states", "recurrent_states"):
            mine, theirs = (getattr(c.layers[layer], states)[0] for c in (cache, expected_cache))
            torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)


def test_one_metadata_build_serves_all_layers_of_a_forward(
    model: GraniteMoeHybridForCausalLM, unpatched: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = load_kernels(KERNELS)
    builds: list[object] = []
    build = kernels.build_metadata
    monkeypatch.setattr(kernels, "build_metadata", lambda *a, **k: builds.append(a) or build(*a, **k))
    operators = install(model, kernels, "torch")
    generated(model, prompts(), 16)
    chunks, one_token_chunk, mamba_layers = 4, 1, 2
    assert len(builds) == chunks - one_token_chunk == operators.calls.metadata_builds
    assert operators.calls.by_operator["ssd_prefill"] == mamba_layers * len(builds)
    assert operators.calls.by_operator["causal_conv1d_prefill"] == mamba_layers * len(builds)
    steps = one_token_chunk + NEW - 1
    assert operators.calls.by_operator["selective_state_update"] == mamba_layers * steps
    assert operators.calls.forwards == chunks + NEW - 1
    assert operators.calls.carried_scans == mamba_layers * 2


def test_a_prompt_of_one_token_is_prefilled(model: GraniteMoeHybridForCausalLM, alone: list[list[int]]) -> None:
    operators = patched(model)
    assert generated(model, [prompts()[3]], None) == [alone[3]]
    assert operators.calls.by_operator["ssd_prefill"] == 2


@pytest.mark.parametrize(("chunk", "refused"), [(None, "V1"), (16, "V0")])
def test_the_schedule_seen_must_be_the_mode(
    model: GraniteMoeHybridForCausalLM, unpatched: None, chunk: int | None, refused: str
) -> None:
    operators = patched(model)
    generated(model, prompts(), chunk)
    other = "V1" if refused == "V0" else "V0"
    operators.calls.check_mode(other, long_prompts=True)
    with pytest.raises(Refusal) as refusal:
        operators.calls.check_mode(refused, long_prompts=True)
    assert refusal.value.reason == "engine_mismatch"


def test_kernels_that_drop_the_carried_state_change_chunked_prefill_only(
    model: GraniteMoeHybridForCausalLM, alone: list[list[int]], changed_kernels: Callable[[str], Path]
) -> None:
    dropping = (
        "_right = ssd_prefill\n"
        "def ssd_prefill(*args, initial_states=None, **options):\n"
        "    return _right(*args, **options)\n"
    )
    patched(model, changed_kernels(dropping))
    assert generated(model, prompts(), None) == alone
    changed = [mine != right for mine, right in zip(generated(model, prompts(), 16), alone, strict=True)]
    assert any(changed[:2])
    assert not any(length <= 1 and differs for length, differs in zip(LENGTHS, changed, strict=True))


def test_each_operator_is_traced_to_the_file_that_served_it(
    model: GraniteMoeHybridForCausalLM, unpatched: None
) -> None:
    kernels = load_kernels(KERNELS)
    install(model, kernels, "torch")
    generated(model, prompts(), 16)
    served = {operator: serving_module(kernels, operator, "torch") for operator in OPERATORS}
    assert served["ssd_prefill"] == "mamba2_varlen.torch_backend.ssd (mamba2_varlen/torch_backend/ssd.py)"
    assert served["selective_state_update"] == "mamba2_varlen.torch_backend.ssu (mamba2_varlen/torch_backend/ssu.py)"
    assert served["causal_conv1d_prefill"] == served["causal_conv1d_update"]
    assert served["causal_conv1d_update"] == "mamba2_varlen.torch_backend.conv (mamba2_varlen/torch_backend/conv.py)"
