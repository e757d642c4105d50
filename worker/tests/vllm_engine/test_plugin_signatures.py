"""The plugin's knowledge of vLLM's operators, held against the signatures of five of vLLM's commits (v0.10.0, 633f943e,
2b6b1d78, fea3e476 and 017e9f44)."""

from types import ModuleType

import pytest
from driftline_worker.children.hf_engine.refusal import Refusal
from driftline_worker.children.vllm_plugin.signatures import Era, known, scan_of

BATCH = """def mamba_chunk_scan_combined(x, dt, A, B, C, chunk_size, D=None, z=None, dt_bias=None, initial_states=None,
    seq_idx=None, chunk_indices=None, chunk_offsets=None, cu_seqlens=None, dt_softplus=False, dt_limit=(0.0, 1.0), {out}
    return_final_states=False, return_varlen_states=False): ..."""
VARLEN = """def mamba_chunk_scan_combined_varlen(x, dt, A, B, C, chunk_size, cu_seqlens, seq_idx, out, D=None, z=None,
    dt_bias=None, initial_states=None, chunk_indices=None, chunk_offsets=None, dt_softplus=False, dt_limit=(0.0, 1.0),
    state_dtype=None): ..."""
CHUNK_ALIGNED = """def mamba_chunk_scan_combined_varlen(x, dt, A, B, C, chunk_size, cu_seqlens, cu_chunk_seqlens,
    last_chunk_indices, seq_idx, out, D=None, z=None, dt_bias=None, initial_states=None, dt_softplus=False,
    dt_limit=(0.0, 1.0), {more} state_dtype=None): ..."""
UPDATE_OLD = """def causal_conv1d_update(x, conv_state, weight, bias=None, activation=None, cache_seqlens=None,
    conv_state_indices=None, pad_slot_id=-1, metadata=None, validate_data=False): ..."""
UPDATE_NEW = """def causal_conv1d_update(x, conv_state, weight, bias=None, activation=None, conv_state_indices=None,
    num_accepted_tokens=None, query_start_loc=None, max_query_len=-1, null_block_id=0, block_idx_last_scheduled_token=None,
    initial_state_idx=None, validate_data=False, out=None): ..."""
UPDATE_CPU = """def causal_conv1d_update(x, conv_state, weight, bias=None, activation=None, conv_state_indices=None,
    query_start_loc=None, pad_slot_id=None, **kwargs): ..."""
STEP_OLD = """def selective_state_update(state, x, dt, A, B, C, D=None, z=None, dt_bias=None, dt_softplus=False,
    state_batch_indices=None, pad_slot_id=-1): ..."""
STEP_NEW = """def selective_state_update(state, x, dt, A, B, C, D, dt_bias, z=None, dt_softplus=False,
    state_batch_indices=None, dst_state_batch_indices=None, null_block_id=0, out=None, num_accepted_tokens=None,
    cu_seqlens=None, is_blackwell=False): ..."""


def module(source: str) -> ModuleType:
    made = ModuleType("vllm.stand_in")
    exec(source, vars(made))  # noqa: S102 - a signature as vLLM writes it
    return made


@pytest.mark.parametrize(
    ("source", "era"),
    [
        (BATCH.format(out=""), Era.BATCH),
        (BATCH.format(out="out=None, state_dtype=None,"), Era.BATCH),
        (VARLEN, Era.VARLEN),
        (CHUNK_ALIGNED.format(more=""), Era.CHUNK_ALIGNED),
        (CHUNK_ALIGNED.format(more="return_intermediate_states=False,"), Era.CHUNK_ALIGNED),
    ],
)
def test_the_era_is_told_by_the_signature(source: str, era: Era) -> None:
    assert scan_of(module(source))[0] is era


@pytest.mark.parametrize("source", [UPDATE_OLD, UPDATE_NEW, UPDATE_CPU, STEP_OLD, STEP_NEW])
def test_decode_operators_of_all_eras_are_known(source: str) -> None:
    name = source.partition("def ")[2].partition("(")[0]
    assert callable(known(module(source), name))


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (CHUNK_ALIGNED.format(more="decay_floor=None,"), "takes decay_floor, which the plugin does not know"),
        (
            "def mamba_chunk_scan_combined(x, dt): ...",
            "no known SSD prefill; it has mamba_chunk_scan_combined\\(x, dt\\)",
        ),
        ("", "it has neither"),
    ],
)
def test_an_unknown_scan_is_refused_by_name(source: str, words: str) -> None:
    with pytest.raises(Refusal, match=words) as refusal:
        scan_of(module(source))
    assert refusal.value.reason == "ops_unknown"


def test_what_an_operator_lacks_or_adds_is_named() -> None:
    with pytest.raises(Refusal, match="causal_conv1d_update takes tree_parents, which the plugin does not know"):
        known(module(UPDATE_NEW.replace("out=None", "out=None, tree_parents=None")), "causal_conv1d_update")
    with pytest.raises(Refusal, match="selective_state_update takes no dt_bias"):
        known(module(STEP_OLD.replace("dt_bias=None, ", "")), "selective_state_update")
    with pytest.raises(Refusal, match="has no rms_norm_gated"):
        known(module(""), "rms_norm_gated")
