"""The plugin on a stand-in of vLLM's modules: what it binds, what its operators compute, what it refuses.

The stand-ins have vLLM's names and signatures and no numbers, so that whatever is computed is the kernels'. The real engine
is in tests/vllm.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import mamba2_varlen as kernels
import pytest
import torch
from driftline_worker.children.vllm_plugin.distribution import reported_calls
from driftline_worker.children.vllm_plugin.kernel_calls import KernelError, UnservedError
from driftline_worker.children.vllm_plugin.registration import LAYERS, put_in_place
from torch import Tensor

SOURCES = {
    "ops.causal_conv1d": """
NULL_BLOCK_ID = 0
def causal_conv1d_fn(x, weight, bias, conv_states, query_start_loc, cache_indices=None, has_initial_state=None,
    activation="silu", pad_slot_id=-1, null_block_id=0, block_idx_first_scheduled_token=None,
    block_idx_last_scheduled_token=None, initial_state_idx=None, num_computed_tokens=None, block_size_to_align=0,
    metadata=None, validate_data=False): raise AssertionError
def causal_conv1d_update(x, conv_state, weight, bias=None, activation=None, conv_state_indices=None,
    num_accepted_tokens=None, query_start_loc=None, max_query_len=-1, null_block_id=0, block_idx_last_scheduled_token=None,
    initial_state_idx=None, validate_data=False): raise AssertionError
""",
    "ops.ssd_combined": """
def mamba_chunk_scan_combined_varlen(x, dt, A, B, C, chunk_size, cu_seqlens, cu_chunk_seqlens, last_chunk_indices, seq_idx,
    out, D=None, z=None, dt_bias=None, initial_states=None, dt_softplus=False, dt_limit=(0.0, float("inf")),
    return_intermediate_states=False, state_dtype=None): raise AssertionError
""",
    "ops.ssu_dispatch": """
def selective_state_update(state, x, dt, A, B, C, D, dt_bias, z=None, dt_softplus=False, state_batch_indices=None,
    dst_state_batch_indices=None, null_block_id=0, out=None, num_accepted_tokens=None, cu_seqlens=None,
    is_blackwell=False): raise AssertionError
""",
    "ops.layernorm_gated": """
def rms_norm_gated(x, weight, bias, z=None, eps=1e-6, group_size=None, norm_before_gate=True): raise AssertionError
""",
    "mamba_mixer2": """
class Mixer2RMSNormGated:
    use_rms_norm, n_groups, tp_size, group_size, variance_epsilon = True, 2, 1, 4, 1e-5
    def forward_native(self, x, gate): return "vLLM's own"
    def forward_cuda(self, x, gate): return "vLLM's own"
""",
}
CHANNELS, WIDTH, HEADS, HEADDIM, STATE = 6, 4, 4, 8, 16
LENGTHS = (5, 9)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """vLLM's modules by their short names, with the plugin in place; `report` is where it reports to."""
    context = ModuleType("vllm.forward_context")
    exec("def get_forward_context(): assert False", vars(context))  # noqa: S102 - as vLLM outside of a step
    monkeypatch.setitem(sys.modules, "vllm.forward_context", context)
    made: dict[str, Any] = {}
    for name in ("vllm", "vllm.model_executor", "vllm.model_executor.layers", LAYERS, f"{LAYERS}.ops"):
        package = ModuleType(name)
        package.__path__ = []
        monkeypatch.setitem(sys.modules, name, package)
    for name, source in SOURCES.items():
        made[name] = ModuleType(f"{LAYERS}.{name}")
        exec(source, vars(made[name]))  # noqa: S102
        monkeypatch.setitem(sys.modules, made[name].__name__, made[name])
    made["mamba_mixer2"].scan = made["ops.ssd_combined"].mamba_chunk_scan_combined_varlen  # as layers bind it
    made["report"] = tmp_path / "calls.jsonl"
    put_in_place(kernels, "torch", made["report"])
    yield made
    made["mamba_mixer2"].Mixer2RMSNormGated._driftline.withdraw()


def random(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(sum(shape)), dtype=torch.float32)


def boundaries() -> Tensor:
    return torch.tensor([0, LENGTHS[0], sum(LENGTHS)], dtype=torch.int32)


def test_the_scan_is_the_kernels_also_where_a_layer_has_bound_it(engine: dict[str, Any]) -> None:
    tokens = sum(LENGTHS)
    x, dt, B, C = (
        random(tokens, HEADS, HEADDIM),
        random(tokens, HEADS),
        random(tokens, 1, STATE),
        random(tokens, 1, STATE),
    )
    A, entering, out = -torch.rand(HEADS), random(2, HEADS, HEADDIM, STATE), torch.full_like(x, float("nan"))
    none = torch.empty(0, dtype=torch.int32)
    states = engine["mamba_mixer2"].scan(
        x, dt, A, B, C, 4, boundaries(), none, none, none, out, initial_states=entering, dt_softplus=True,
        state_dtype=torch.float32,
    )  # fmt: skip
    wanted = kernels.ssd_prefill(
        x, dt, A, B, C, metadata=kernels.build_metadata(boundaries(), chunk_size=4), initial_states=entering,
        dt_softplus=True, backend="reference",
    )  # fmt: skip
    torch.testing.assert_close(out, wanted.out, atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(states, wanted.final_states, atol=1e-4, rtol=1e-4)
    [call] = reported_calls(engine["report"])
    assert call.operator == "ssd_prefill"
    assert call.served == "mamba2_varlen.torch_backend.ssd (mamba2_varlen/torch_backend/ssd.py)"
    assert call.in_place_of.endswith("ops.ssd_combined.mamba_chunk_scan_combined_varlen")


def test_a_prefill_then_a_step_equals_one_longer_prefill(engine: dict[str, Any]) -> None:
    """Through vLLM's slots: a sequence that begins finds NaN in its slot, a padded row of the step touches nothing."""
    operators = engine["ops.causal_conv1d"]
    x, weight, bias = random(sum(LENGTHS), CHANNELS), random(CHANNELS, WIDTH), random(CHANNELS)
    pool = torch.full((4, WIDTH - 1, CHANNELS), float("nan")).transpose(1, 2)
    last = [end - 1 for end in boundaries().tolist()[1:]]
    first = [token for token in range(sum(LENGTHS)) if token not in last]
    starts = torch.tensor([0, LENGTHS[0] - 1, sum(LENGTHS) - 2], dtype=torch.int32)
    slots = torch.tensor([3, 1], dtype=torch.int32)
    head = operators.causal_conv1d_fn(
        x[first].T, weight, bias, activation="silu", conv_states=pool, query_start_loc=starts, cache_indices=slots,
        has_initial_state=torch.tensor([False, False]),
    )  # fmt: skip
    padded = torch.cat([x[last], random(1, CHANNELS)])
    rows = torch.tensor([[3], [1], [0]], dtype=torch.int32)
    tail = operators.causal_conv1d_update(padded, pool, weight, bias, "silu", conv_state_indices=rows)
    wanted = kernels.causal_conv1d_prefill(
        x,
        weight,
        bias,
        metadata=kernels.build_metadata(boundaries(), chunk_size=4),
        activation="silu",
        backend="reference",
    )
    torch.testing.assert_close(head.T, wanted.out[first], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(tail[:2], wanted.out[last], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(pool[[3, 1]], wanted.final_states, atol=1e-5, rtol=1e-5)
    assert pool[0].isnan().all()
    assert pool[2].isnan().all()


def step(**changes: Any) -> dict[str, Any]:
    rows = 3
    given = {
        "state": random(4, HEADS, HEADDIM, STATE), "x": random(rows, HEADS, HEADDIM),
        "dt": random(rows, HEADS)[:, :, None].expand(-1, -1, HEADDIM),
        "A": (-torch.ones(HEADS))[:, None, None].expand(-1, HEADDIM, STATE), "B": random(rows, 1, STATE),
        "C": random(rows, 1, STATE), "D": random(HEADS)[:, None].expand(-1, HEADDIM),
        "dt_bias": random(HEADS)[:, None].expand(-1, HEADDIM), "dt_softplus": True,
        "state_batch_indices": torch.tensor([[2], [3], [0]]), "out": torch.empty(rows, HEADS, HEADDIM),
    }  # fmt: skip
    return given | changes


def test_the_state_update_writes_out_and_the_rows_slots_alone(engine: dict[str, Any]) -> None:
    given = step()
    before = given["state"].clone()
    engine["ops.ssu_dispatch"].selective_state_update(**given)
    wanted = before[[2, 3]].clone()
    out = kernels.selective_state_update(
        wanted, given["x"][:2], given["dt"][:2, :, 0], -torch.ones(HEADS), given["B"][:2], given["C"][:2], D=random(HEADS),
        dt_bias=random(HEADS), dt_softplus=True, backend="reference",
    )  # fmt: skip
    torch.testing.assert_close(given["out"][:2], out, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(given["state"][[2, 3]], wanted, atol=1e-5, rtol=1e-5)
    assert torch.equal(given["state"][:2], before[:2])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"num_accepted_tokens": torch.ones(3)}, "with num_accepted_tokens"),
        ({"state_batch_indices": torch.ones(3, 2, dtype=torch.int32)}, "with 2 slots a row"),
        ({"dst_state_batch_indices": torch.ones(3, dtype=torch.int32)}, "other slots than it reads"),
        ({"A": -torch.rand(HEADS, HEADDIM, STATE)}, "A that differs within a head"),
    ],
)
def test_what_is_not_served_is_named(engine: dict[str, Any], changes: dict[str, Any], words: str) -> None:
    with pytest.raises(UnservedError, match=words):
        engine["ops.ssu_dispatch"].selective_state_update(**step(**changes))


def test_states_at_block_boundaries_are_not_served(engine: dict[str, Any]) -> None:
    with pytest.raises(UnservedError, match="enable_prefix_caching = false"):
        engine["ops.causal_conv1d"].causal_conv1d_fn(
            random(CHANNELS, 5), random(CHANNELS, WIDTH), None, random(2, CHANNELS, WIDTH - 1), boundaries(),
            initial_state_idx=torch.zeros(2),
        )  # fmt: skip


def test_an_exception_of_a_kernel_names_the_operator(engine: dict[str, Any]) -> None:
    with pytest.raises(KernelError, match="selective_state_update: ValueError: B must have"):
        engine["ops.ssu_dispatch"].selective_state_update(**step(B=random(3, STATE)))


def test_the_layers_norm_is_the_kernels_unless_groups_cross_ranks(engine: dict[str, Any]) -> None:
    layer = engine["mamba_mixer2"].Mixer2RMSNormGated()
    layer.weight = random(8)
    x, gate = random(3, 8), random(3, 9)[:, :8]
    wanted = kernels.rms_norm_gated(x, layer.weight, z=gate, eps=1e-5, group_size=4, backend="reference")
    for forward in (layer.forward_native, layer.forward_cuda):
        torch.testing.assert_close(forward(x, gate), wanted.to(x.dtype), atol=1e-5, rtol=1e-5)
    layer.tp_size = 3
    assert layer.forward_native(x, gate) == "vLLM's own"
