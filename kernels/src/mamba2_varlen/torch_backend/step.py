"""dt as a step size, and the dtype the torch backend computes in."""

import torch
from torch import Tensor
from torch.nn.functional import softplus

from ..arguments import StepSize

# softplus(x) equals x to float32 precision above this; vLLM switches here too.
SOFTPLUS_LINEAR_ABOVE = 20.0


def compute_dtype(x: Tensor) -> torch.dtype:
    """float64 for float64 inputs, float32 for all others."""
    return torch.float64 if x.dtype == torch.float64 else torch.float32


def step_size(dt: Tensor, step: StepSize, dtype: torch.dtype) -> Tensor:
    """dt in `dtype` with bias, softplus and clamp applied."""
    dt = dt.to(dtype)
    if step.bias is not None:
        dt = dt + step.bias.to(dtype)
    if step.softplus:
        dt = softplus(dt, threshold=SOFTPLUS_LINEAR_ABOVE)
    return dt.clamp(*step.limit)
