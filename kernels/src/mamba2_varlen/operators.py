"""The public operators: collect the arguments into one checked value and hand it to the backend. No computing here."""

import math

import torch
from torch import Tensor

from .arguments import ConvArguments, ConvUpdateArguments, NormArguments, SsdArguments, SsuArguments, StepSize
from .backends import backend_module
from .metadata import VarlenMetadata
from .results import ConvResult, SsdResult


def ssd_prefill(
    x: Tensor,
    dt: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    *,
    metadata: VarlenMetadata,
    D: Tensor | None = None,
    z: Tensor | None = None,
    dt_bias: Tensor | None = None,
    dt_softplus: bool = False,
    dt_limit: tuple[float, float] = (0.0, math.inf),
    initial_states: Tensor | None = None,
    state_dtype: torch.dtype | None = None,
    out: Tensor | None = None,
    return_intermediate_states: bool = False,
    backend: str = "auto",
) -> SsdResult:
    """Mamba2's state-space scan over packed sequences (Dao and Gu, "Transformers are SSMs", 2024, section 6).

    Per token t, head h of group g: s = exp(A_h dt_t) s + dt_t x_t B_t^T, out_t = s C_t + D_h x_t,
    then out_t * silu(z_t).

    Args:
        x: (T, H, P). dt: (T, H). A: (H), at most 0. B, C: (T, G, N) with H a multiple of G. D: (H) or (H, P).
        z: (T, H, P).
        metadata: `build_metadata` of the packed batch; its chunk_size is the granularity of the scan and of the
            intermediate states.
        dt_bias: (H), added to dt before softplus (linear above 20) and the clamp to dt_limit (which must keep dt >= 0).
        initial_states: (b, H, P, N) or None for zeros.
        state_dtype: dtype of returned states, by default float32 (float64 for float64 inputs).
        out: (T, H, P) in x's dtype, written in place and returned.

    Raises:
        ValueError, TypeError: an argument does not fit; the message names it and both values.
        RuntimeError: the backend cannot run on x's device.
    """
    arguments = SsdArguments(
        x=x,
        dt=dt,
        A=A,
        B=B,
        C=C,
        D=D,
        z=z,
        step=StepSize(bias=dt_bias, softplus=dt_softplus, limit=dt_limit),
        metadata=metadata,
        initial_states=initial_states,
        state_dtype=state_dtype or (torch.float64 if x.dtype == torch.float64 else torch.float32),
        out=torch.empty(x.shape, dtype=x.dtype, device=x.device) if out is None else out,
        return_intermediate_states=return_intermediate_states,
    )
    result: SsdResult = backend_module(backend, "ssd", x.device).ssd_prefill(arguments)
    return result


def causal_conv1d_prefill(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    metadata: VarlenMetadata,
    initial_states: Tensor | None = None,
    activation: str | None = None,
    out: Tensor | None = None,
    backend: str = "auto",
) -> ConvResult:
    """Depthwise causal convolution over packed sequences: out_t = act(bias + sum_w weight_w x_(t-W+1+w)).

    Args:
        x: (T, D), stride 1 in either dimension. weight: (D, W), W from 2 to 4. bias: (D).
        initial_states: (b, D, W-1), the inputs before each sequence, oldest first; None for zeros.
        activation: None, "silu" or "swish" (the same).
        out: (T, D) in x's dtype, written in place and returned; by default laid out as x.

    Returns the outputs and the final states (b, D, W-1) in x's dtype, ready to be the next call's initial states.
    Raises ValueError or TypeError naming the argument that does not fit.
    """
    arguments = ConvArguments(
        x=x,
        weight=weight,
        bias=bias,
        metadata=metadata,
        initial_states=initial_states,
        activation=activation,
        out=torch.empty_like(x) if out is None else out,
    )
    result: ConvResult = backend_module(backend, "conv", x.device).causal_conv1d_prefill(arguments)
    return result


def causal_conv1d_update(
    x: Tensor,
    conv_state: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    activation: str | None = None,
    state_indices: Tensor | None = None,
    backend: str = "auto",
) -> Tensor:
    """One decode step of the convolution: x (b, D) in, out (b, D); conv_state (slots, D, W-1) shifts in place.

    state_indices (b) names each row's slot; a negative one marks a padding row, whose output is zero and which
    touches no slot. Without it row i uses slot i. Rows of one call must not share a slot.
    """
    arguments = ConvUpdateArguments(
        x=x, conv_state=conv_state, weight=weight, bias=bias, activation=activation, state_indices=state_indices
    )
    out: Tensor = backend_module(backend, "conv", x.device).causal_conv1d_update(arguments)
    return out


def selective_state_update(
    state: Tensor,
    x: Tensor,
    dt: Tensor,
    A: Tensor,
    B: Tensor,
    C: Tensor,
    *,
    D: Tensor | None = None,
    z: Tensor | None = None,
    dt_bias: Tensor | None = None,
    dt_softplus: bool = False,
    dt_limit: tuple[float, float] = (0.0, math.inf),
    state_indices: Tensor | None = None,
    out: Tensor | None = None,
    backend: str = "auto",
) -> Tensor:
    """One decode step of the scan: x (b, H, P) in, out (b, H, P); state (slots, H, P, N) advances in place.

    dt (b, H), A (H), B and C (b, G, N), D (H) or (H, P), z (b, H, P); formula and step size as in `ssd_prefill`,
    slots and padding rows as in `causal_conv1d_update`.
    """
    arguments = SsuArguments(
        state=state,
        x=x,
        dt=dt,
        A=A,
        B=B,
        C=C,
        D=D,
        z=z,
        step=StepSize(bias=dt_bias, softplus=dt_softplus, limit=dt_limit),
        state_indices=state_indices,
        out=torch.empty(x.shape, dtype=x.dtype, device=x.device) if out is None else out,
    )
    result: Tensor = backend_module(backend, "ssu", x.device).selective_state_update(arguments)
    return result


def rms_norm_gated(
    x: Tensor,
    weight: Tensor,
    *,
    z: Tensor | None = None,
    eps: float = 1e-5,
    group_size: int | None = None,
    norm_before_gate: bool = False,
    backend: str = "auto",
) -> Tensor:
    """RMSNorm of x (..., hidden) gated by silu(z): norm(x * silu(z)) * weight, or norm(x) * weight * silu(z) with
    norm_before_gate. Each run of group_size channels (default: all) is normed on its own."""
    arguments = NormArguments(
        x=x,
        weight=weight,
        z=z,
        eps=eps,
        group_size=x.shape[-1] if group_size is None else group_size,
        norm_before_gate=norm_before_gate,
    )
    out: Tensor = backend_module(backend, "norm", x.device).rms_norm_gated(arguments)
    return out
