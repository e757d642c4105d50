"""The decode step's inputs as kernels of Mamba1's form take them: one value for every channel and state of a head."""

from typing import Any

import torch
from torch import Tensor

from mamba2_conformance.problem import StateStep


def tied_step(problem: StateStep) -> dict[str, Any]:
    """Arguments of a `selective_state_update`. Repeated values have stride 0, by which kernels know they are one.

    D and dt_bias are always given, zero where the problem has none: callers always have them.
    """
    heads, head_dim, state_size = problem.state.shape[1:]
    zero = torch.zeros(heads, device=problem.x.device)
    return {
        "state": problem.state,
        "x": problem.x,
        "dt": problem.dt[..., None].expand(-1, -1, head_dim),
        "A": problem.A[:, None, None].expand(-1, head_dim, state_size),
        "B": problem.B,
        "C": problem.C,
        "D": per_channel(zero if problem.D is None else problem.D, head_dim),
        "z": problem.z,
        "dt_bias": per_channel(zero if problem.dt_bias is None else problem.dt_bias, head_dim),
        "dt_softplus": problem.dt_softplus,
        "state_batch_indices": problem.state_indices,
    }


def per_channel(values: Tensor, head_dim: int) -> Tensor:
    """(H) or (H,P) as (H,P)."""
    return values if values.dim() == 2 else values[:, None].expand(-1, head_dim)
