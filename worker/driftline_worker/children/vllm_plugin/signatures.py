"""Which of vLLM's Mamba2 operators there are, and whether this plugin knows all that they take. By signature, never by date.

A parameter that is not known could carry meaning that our kernels would ignore, so it is a refusal.
"""

import inspect
from collections.abc import Callable, Mapping, Set
from enum import StrEnum
from types import ModuleType
from typing import Final

from ..hf_engine.refusal import permanent

Function = Callable[..., object]


class Era(StrEnum):
    """Generations of vLLM's SSD prefill: with a batch dimension; packed sequences only, chunks cut by the buffer (vLLM
    pull request 21467); chunks cut by sequences (24683)."""

    BATCH = "batch"
    VARLEN = "varlen"
    CHUNK_ALIGNED = "chunk_aligned"


_SCAN: Final = {
    "x",
    "dt",
    "A",
    "B",
    "C",
    "chunk_size",
    "D",
    "z",
    "dt_bias",
    "initial_states",
    "dt_softplus",
    "dt_limit",
}

SCANS: Final[tuple[tuple[Era, str, Set[str], Set[str]], ...]] = (
    (
        Era.CHUNK_ALIGNED, "mamba_chunk_scan_combined_varlen",
        {"cu_seqlens", "cu_chunk_seqlens", "last_chunk_indices", "seq_idx", "out"},
        {"return_intermediate_states", "state_dtype"},
    ),
    (
        Era.VARLEN, "mamba_chunk_scan_combined_varlen", {"cu_seqlens", "seq_idx", "chunk_indices", "chunk_offsets", "out"},
        {"state_dtype"},
    ),
    (
        Era.BATCH, "mamba_chunk_scan_combined", {"seq_idx", "cu_seqlens", "return_varlen_states"},
        {"chunk_indices", "chunk_offsets", "return_final_states", "out", "state_dtype"},
    ),
)  # fmt: skip
"""Era, its entry, the parameters that tell it, and those that it may have besides."""

CACHED_PREFIX: Final = frozenset(
    {
        "block_idx_first_scheduled_token", "block_idx_last_scheduled_token", "initial_state_idx", "num_computed_tokens",
    }
)  # fmt: skip
"""Set only where states are kept at every block boundary (prefix caching in mode `all`)."""

SPECULATION: Final = frozenset({"num_accepted_tokens", "query_start_loc", "cu_seqlens", "cache_seqlens"})
"""Of decode steps: set only where a row has several tokens."""

_IDLE: Final = {"pad_slot_id", "null_block_id", "validate_data", "metadata"}

TAKEN: Final[Mapping[str, tuple[Set[str], Set[str]]]] = {
    "causal_conv1d_fn": (
        {"x", "weight", "bias", "conv_states", "query_start_loc", "cache_indices", "has_initial_state", "activation"},
        _IDLE | CACHED_PREFIX | {"block_size_to_align"},
    ),
    "causal_conv1d_update": (
        {"x", "conv_state", "weight", "bias", "activation", "conv_state_indices"},
        _IDLE | CACHED_PREFIX | SPECULATION | {"max_query_len", "out"},
    ),
    "selective_state_update": (
        {"state", "x", "dt", "A", "B", "C", "D", "z", "dt_bias", "dt_softplus", "state_batch_indices"},
        _IDLE
        | SPECULATION
        | {"dst_state_batch_indices", "out", "is_blackwell", "enable_stochastic_rounding", "cache_philox_rounds"},
    ),
    "rms_norm_gated": ({"x", "weight", "bias", "z", "eps", "group_size", "norm_before_gate"}, frozenset()),
}
"""Operator -> parameters that it must have, and those that it may have."""


def scan_of(module: ModuleType) -> tuple[Era, str]:
    """The era of an `ssd_combined` module, and its entry's name. Raises Refusal ops_unknown."""
    for era, name, telling, others in SCANS:
        function = getattr(module, name, None)
        if callable(function) and telling <= set(parameters(function)):
            refuse_unknown(name, function, needed=_SCAN | telling, known=others)
            return era, name
    found = [f"{name}({', '.join(parameters(getattr(module, name)))})" for name in _offered(module)]
    raise permanent(
        "ops_unknown", f"vLLM's ssd_combined has no known SSD prefill; it has {'; '.join(found) or 'neither'}"
    )


def known(module: ModuleType, name: str) -> Function:
    """The operator `name` of a module of vLLM's. Raises Refusal ops_unknown."""
    function: Function | None = getattr(module, name, None)
    if function is None:
        raise permanent("ops_unknown", f"vLLM's {module.__name__} has no {name}")
    needed, others = TAKEN[name]
    refuse_unknown(name, function, needed=needed, known=others)
    return function


def refuse_unknown(name: str, function: Function, *, needed: Set[str], known: Set[str]) -> None:
    """Raises Refusal ops_unknown if `function` lacks a parameter, or takes one of which we know nothing."""
    found = set(parameters(function))
    open_ended = any(one.kind is one.VAR_KEYWORD for one in inspect.signature(function).parameters.values())
    if missing := sorted(needed - found) if not open_ended else []:
        raise permanent("ops_unknown", f"vLLM's {name} takes no {', '.join(missing)}")
    if strange := sorted(found - needed - known):
        raise permanent("ops_unknown", f"vLLM's {name} takes {', '.join(strange)}, which the plugin does not know")


def parameters(function: Function) -> list[str]:
    """Names in order, without those of a function that takes any."""
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [name for name, one in inspect.signature(function).parameters.items() if one.kind not in kinds]


def _offered(module: ModuleType) -> list[str]:
    return sorted({name for _, name, _, _ in SCANS if callable(getattr(module, name, None))})
