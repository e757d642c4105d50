"""The gated RMSNorm in float64."""

import torch
from torch import Tensor
from torch.nn.functional import silu

from ..arguments import NormArguments


def rms_norm_gated(arguments: NormArguments) -> Tensor:
    """See `mamba2_varlen.rms_norm_gated`."""
    x, weight = arguments.x.double(), arguments.weight.double()
    gate = None if arguments.z is None else silu(arguments.z.double())
    if gate is not None and not arguments.norm_before_gate:
        x = x * gate
    grouped = x.unflatten(-1, (-1, arguments.group_size))
    normed = grouped * torch.rsqrt(grouped.square().mean(-1, keepdim=True) + arguments.eps)
    out = normed.flatten(-2) * weight
    if gate is not None and arguments.norm_before_gate:
        out = out * gate
    return out.to(arguments.x.dtype)
