"""The gated RMSNorm: some rows of one group of channels a program."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..arguments import NormArguments
from .gate import silu
from .launch import block_of, cdiv, launch, refuse_float64
from .tiles import tile_for


@triton.jit
def _norm_kernel(
    x_ptr, weight_ptr, z_ptr, out_ptr,
    rows, group_size, hidden, eps, stride_x_r, stride_z_r,
    GATE_FIRST: tl.constexpr, BLOCK: tl.constexpr, BLOCK_ROWS: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64) * BLOCK_ROWS + tl.arange(0, BLOCK_ROWS)
    within = tl.arange(0, BLOCK)
    channel = tl.program_id(1) * group_size + within
    inside = (row < rows)[:, None] & (within < group_size)[None, :]
    x = tl.load(x_ptr + row[:, None] * stride_x_r + channel[None, :], mask=inside, other=0.0).to(tl.float32)
    gate = tl.full([BLOCK_ROWS, BLOCK], 1.0, dtype=tl.float32)
    if z_ptr is not None:
        z = tl.load(z_ptr + row[:, None] * stride_z_r + channel[None, :], mask=inside, other=0.0).to(tl.float32)
        gate = silu(z)
    if GATE_FIRST:
        x *= gate
    scale = 1.0 / tl.sqrt(tl.sum(x * x, axis=1) / group_size + eps)
    weight = tl.load(weight_ptr + channel, mask=within < group_size, other=0.0).to(tl.float32)
    out = x * scale[:, None] * weight[None, :]
    if not GATE_FIRST:
        out *= gate
    tl.store(out_ptr + row[:, None] * hidden + channel[None, :], out.to(out_ptr.dtype.element_ty), mask=inside)


def rms_norm_gated(arguments: NormArguments) -> Tensor:
    """See `mamba2_varlen.rms_norm_gated`."""
    refuse_float64(arguments.x)
    x, z = _rows(arguments.x), None if arguments.z is None else _rows(arguments.z)
    rows, hidden = x.shape
    out = torch.empty(arguments.x.shape, dtype=x.dtype, device=x.device)
    launch(
        "norm",
        _norm_kernel,
        lambda blocks: (cdiv(rows, blocks["BLOCK_ROWS"]), hidden // arguments.group_size),
        tile_for("norm", arguments.group_size),
        x_ptr=x, weight_ptr=arguments.weight.contiguous(), z_ptr=z, out_ptr=out,
        rows=rows, group_size=arguments.group_size, hidden=hidden, eps=float(arguments.eps),
        stride_x_r=x.stride(0), stride_z_r=0 if z is None else z.stride(0),
        GATE_FIRST=not arguments.norm_before_gate, BLOCK=block_of(arguments.group_size),
    )  # fmt: skip
    return out


def _rows(tensor: Tensor) -> Tensor:
    """(rows, hidden) with adjacent channels; a part of a wider tensor, as z is of a projection, is not copied."""
    rows = tensor.reshape(-1, tensor.shape[-1])
    return rows if rows.stride(1) == 1 else rows.contiguous()
