"""Stage 1: step sizes, and the running log-decay of every chunk."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..arguments import SsdArguments
from .launch import block_of, cdiv, launch
from .step import step_size


@triton.jit
def _cumsum_kernel(
    dt_ptr, A_ptr, bias_ptr, starts_ptr, step_ptr, decay_ptr,
    heads, low, high,
    stride_dt_t, stride_dt_h,
    CHUNK: tl.constexpr, SOFTPLUS: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_H: tl.constexpr,
):  # fmt: skip
    chunk = tl.program_id(0).to(tl.int64)
    head = tl.program_id(1) * BLOCK_H + tl.arange(0, BLOCK_H)
    row = tl.arange(0, BLOCK_Q)
    start = tl.load(starts_ptr + chunk).to(tl.int64)
    end = tl.load(starts_ptr + chunk + 1).to(tl.int64)
    inside = (head[:, None] < heads) & (start + row < end)[None, :]

    source = dt_ptr + (start + row)[None, :] * stride_dt_t + head[:, None].to(tl.int64) * stride_dt_h
    dt = tl.load(source, mask=inside, other=0.0).to(tl.float32)
    bias = tl.zeros([BLOCK_H], dtype=tl.float32)
    if bias_ptr is not None:
        bias = tl.load(bias_ptr + head, mask=head < heads, other=0.0).to(tl.float32)
    step = tl.where(inside, step_size(dt, bias[:, None], low, high, SOFTPLUS), 0.0)
    A = tl.load(A_ptr + head, mask=head < heads, other=0.0).to(tl.float32)
    decay = tl.cumsum(step * A[:, None], axis=1)

    target = (chunk * heads + head[:, None]) * CHUNK + row[None, :]
    stored = (head[:, None] < heads) & (row < CHUNK)[None, :]
    tl.store(step_ptr + target, step, mask=stored)
    tl.store(decay_ptr + target, decay, mask=stored)


def chunk_cumsum(arguments: SsdArguments) -> tuple[Tensor, Tensor]:
    """Step size and running sum of A times it from each chunk's start, both (nchunks, H, chunk_size) float32.

    Rows past a chunk's end have step 0 and repeat the last decay.
    """
    metadata, dt = arguments.metadata, arguments.dt
    heads = dt.shape[1]
    step = torch.empty((metadata.chunks, heads, metadata.chunk_size), dtype=torch.float32, device=dt.device)
    decay = torch.empty_like(step)
    bias = arguments.step.bias
    launch(
        "ssd_cumsum",
        _cumsum_kernel,
        lambda blocks: (metadata.chunks, cdiv(heads, blocks["BLOCK_H"])),
        dt_ptr=dt, A_ptr=arguments.A.contiguous(), bias_ptr=None if bias is None else bias.contiguous(),
        starts_ptr=metadata.cu_chunk_seqlens, step_ptr=step, decay_ptr=decay,
        heads=heads, low=float(arguments.step.limit[0]), high=float(arguments.step.limit[1]),
        stride_dt_t=dt.stride(0), stride_dt_h=dt.stride(1),
        CHUNK=metadata.chunk_size, SOFTPLUS=arguments.step.softplus, BLOCK_Q=block_of(metadata.chunk_size),
    )  # fmt: skip
    return step, decay
