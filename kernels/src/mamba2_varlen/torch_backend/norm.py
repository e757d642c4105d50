"""The gated RMSNorm."""

import torch
from torch import Tensor
from torch.nn.functional import silu

from ..arguments import NormArguments
from .step import compute_dtype


def rms_norm_gated(arguments: NormArguments) -> Tensor:
    """See `mamba2_varlen.rms_norm_gated`."""
    dtype = compute_dtype(arguments.x)
    x, weight = arguments.x.to(dtype), arguments.weight.to(dtype)
    gate = None if arguments.z is None else silu(arguments.z.to(dtype))
    if gate is not None and not arguments.norm_before_gate:
        x = x * gate
    grouped = x.unflatten(-1, (-1, arguments.group_size))
    scale = torch.rsqrt(grouped.square().mean(-1, keepdim=True) + arguments.eps)
    out = (grouped * scale).flatten(-2) * weight
    if gate is not None and arguments.norm_before_gate:
        out = out * gate
    return out.to(arguments.x.dtype)
