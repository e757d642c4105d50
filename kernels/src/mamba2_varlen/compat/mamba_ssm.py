"""mamba_ssm's signatures (batch dimension first) for the scan, the decode step and the gated norm."""

import math

from torch import Tensor

from .. import operators
from ..metadata import build_metadata
from .vllm import selective_state_update as _selective_state_update


def mamba_chunk_scan_combined(
    x: Tensor,
    dt: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    chunk_size: int,
    D: Tensor | None = None,
    z: Tensor | None = None,
    dt_bias: Tensor | None = None,
    initial_states: Tensor | None = None,
    seq_idx: Tensor | None = None,
    cu_seqlens: Tensor | None = None,
    dt_softplus: bool = False,
    dt_limit: tuple[float, float] = (0.0, math.inf),
    return_final_states: bool = False,
    return_varlen_states: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """x (batch, L, H, P), dt (batch, L, H), B and C (batch, L, G, N): every row one sequence of length L.

    Raises ValueError for seq_idx, cu_seqlens and return_varlen_states: packed sequences have `ssd_prefill`.
    """
    if seq_idx is not None or cu_seqlens is not None or return_varlen_states:
        raise ValueError(
            "seq_idx, cu_seqlens and return_varlen_states are not served here; use mamba2_varlen.ssd_prefill"
        )
    batch, length = x.shape[:2]
    metadata = build_metadata([row * length for row in range(batch + 1)], chunk_size=chunk_size, device=x.device)
    result = operators.ssd_prefill(
        x.flatten(0, 1),
        dt.flatten(0, 1),
        A,
        B.flatten(0, 1),
        C.flatten(0, 1),
        metadata=metadata,
        D=D,
        z=None if z is None else z.flatten(0, 1),
        dt_bias=dt_bias,
        dt_softplus=dt_softplus,
        dt_limit=dt_limit,
        initial_states=initial_states,
    )
    out = result.out.unflatten(0, (batch, length))
    return (out, result.final_states) if return_final_states else out


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
) -> Tensor:
    """As vLLM's: tied per-head A, dt and dt_bias; state (slots, H, P, N) in place."""
    return _selective_state_update(
        state, x, dt, A, B, C, D, z, dt_bias, dt_softplus, state_batch_indices=state_batch_indices
    )


def rmsnorm_fn(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    z: Tensor | None = None,
    eps: float = 1e-6,
    group_size: int | None = None,
    norm_before_gate: bool = True,
) -> Tensor:
    """Gated RMSNorm; a bias is added last."""
    out = operators.rms_norm_gated(x, weight, z=z, eps=eps, group_size=group_size, norm_before_gate=norm_before_gate)
    return out if bias is None else out + bias.to(out.dtype)
