"""vLLM's Mamba2 operator signatures as of its change #24683 (September 2025), where chunks lie within sequences.

Each call builds its own metadata from the boundaries, which waits for the device; pass `metadata` of ours to share
one among
layers. Not supported, and refused: intermediate states on a chunk grid other than ours, several tokens a decode row.
"""

import math

import torch
from torch import Tensor

from .. import operators
from ..metadata import VarlenMetadata, build_metadata
from .tied import per_head

PAD_SLOT_ID = -1


def mamba_chunk_scan_combined_varlen(
    x: Tensor,
    dt: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    chunk_size: int,
    cu_seqlens: Tensor,
    cu_chunk_seqlens: Tensor,
    last_chunk_indices: Tensor,
    seq_idx: Tensor,
    out: Tensor,
    D: Tensor | None = None,
    z: Tensor | None = None,
    dt_bias: Tensor | None = None,
    initial_states: Tensor | None = None,
    dt_softplus: bool = False,
    dt_limit: tuple[float, float] = (0.0, math.inf),
    return_intermediate_states: bool = False,
    state_dtype: torch.dtype | None = None,
    *,
    metadata: VarlenMetadata | None = None,
) -> Tensor:
    """Write `out` (T, H, P); return the final states (b, H, P, N), or all chunks' states with
    return_intermediate_states."""
    metadata = metadata or build_metadata(cu_seqlens, chunk_size=chunk_size)
    if return_intermediate_states and not torch.equal(cu_chunk_seqlens.long(), metadata.cu_chunk_seqlens.long()):
        raise ValueError(
            "cu_chunk_seqlens must cut each sequence from its start when return_intermediate_states is set: "
            f"wanted {metadata.cu_chunk_seqlens.tolist()}, got {cu_chunk_seqlens.tolist()}"
        )
    result = operators.ssd_prefill(
        x,
        dt,
        A,
        B,
        C,
        metadata=metadata,
        D=D,
        z=z,
        dt_bias=dt_bias,
        dt_softplus=dt_softplus,
        dt_limit=dt_limit,
        initial_states=initial_states,
        state_dtype=state_dtype or x.dtype,
        out=out,
        return_intermediate_states=return_intermediate_states,
    )
    return result.final_states if result.intermediate_states is None else result.intermediate_states


def causal_conv1d_fn(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    conv_states: Tensor,
    query_start_loc: Tensor,
    cache_indices: Tensor | None = None,
    has_initial_state: Tensor | None = None,
    activation: str | None = "silu",
    pad_slot_id: int = PAD_SLOT_ID,
    metadata: VarlenMetadata | None = None,
) -> Tensor:
    """Convolve x (dim, T); histories come from and go back to conv_states (slots, dim, W-1). Padded sequences keep no
    state."""
    metadata = metadata or build_metadata(query_start_loc, chunk_size=1)
    history = weight.shape[1] - 1
    slots = torch.arange(metadata.sequences, device=x.device) if cache_indices is None else cache_indices.long()
    live = slots != pad_slot_id
    known = torch.zeros_like(live) if has_initial_state is None else live & has_initial_state
    initial = conv_states[slots.clamp(min=0)][..., -history:].to(x.dtype) * known[:, None, None]
    result = operators.causal_conv1d_prefill(
        x.T, weight, bias, metadata=metadata, initial_states=initial, activation=activation
    )
    conv_states[slots[live], :, -history:] = result.final_states[live].to(conv_states.dtype)
    return result.out.T


def causal_conv1d_update(
    x: Tensor,
    conv_state: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    activation: str | bool | None = None,
    conv_state_indices: Tensor | None = None,
    pad_slot_id: int = PAD_SLOT_ID,
) -> Tensor:
    """One token a row: x (b, dim) or (b, dim, 1); conv_state (slots, dim, W-1) shifts in place."""
    if x.dim() == 3 and x.shape[2] != 1:
        raise ValueError(f"x must hold one token a row, got shape {tuple(x.shape)}")
    rows = x[..., 0] if x.dim() == 3 else x
    named = ("silu" if activation else None) if isinstance(activation, bool) else activation
    out = operators.causal_conv1d_update(
        rows, conv_state, weight, bias, activation=named, state_indices=_slots(conv_state_indices, pad_slot_id)
    )
    return out.view_as(x)


def selective_state_update(
    state: Tensor,
    x: Tensor,
    dt: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    D: Tensor | None = None,
    z: Tensor | None = None,
    dt_bias: Tensor | None = None,
    dt_softplus: bool = False,
    state_batch_indices: Tensor | None = None,
    pad_slot_id: int = PAD_SLOT_ID,
    out: Tensor | None = None,
) -> Tensor:
    """x and dt (b, H, P), A (H, P, N), D and dt_bias (H, P), all tied within a head; state (slots, H, P, N) in
    place."""
    return operators.selective_state_update(
        state,
        x,
        per_head("dt", dt, 1),
        per_head("A", A, 0),
        B,
        C,
        D=D,
        z=z,
        dt_bias=None if dt_bias is None else per_head("dt_bias", dt_bias, 0),
        dt_softplus=dt_softplus,
        state_indices=_slots(state_batch_indices, pad_slot_id),
        out=out,
    )


def _slots(indices: Tensor | None, pad_slot_id: int) -> Tensor | None:
    if indices is None or pad_slot_id == -1:
        return indices
    return torch.where(indices == pad_slot_id, -1, indices)
