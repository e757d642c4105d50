"""Stage 2: what each chunk adds to the state."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..arguments import SsdArguments
from .launch import cdiv, launch, product_dtype


@triton.jit
def _chunk_state_kernel(
    x_ptr, B_ptr, step_ptr, decay_ptr, starts_ptr, added_ptr,
    heads, headdim, size, heads_per_group,
    stride_x_t, stride_x_h, stride_x_p, stride_b_t, stride_b_g, stride_b_n,
    CHUNK: tl.constexpr, DTYPE: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    chunk = tl.program_id(0).to(tl.int64)
    head = tl.program_id(2).to(tl.int64)
    blocks_n = tl.cdiv(size, BLOCK_N)
    channel = (tl.program_id(1) // blocks_n) * BLOCK_P + tl.arange(0, BLOCK_P)
    column = (tl.program_id(1) % blocks_n) * BLOCK_N + tl.arange(0, BLOCK_N)
    start = tl.load(starts_ptr + chunk).to(tl.int64)
    length = (tl.load(starts_ptr + chunk + 1).to(tl.int64) - start).to(tl.int32)
    per_row = (chunk * heads + head) * CHUNK

    x_ptr += start * stride_x_t + head * stride_x_h
    B_ptr += start * stride_b_t + (head // heads_per_group) * stride_b_g
    last = tl.load(decay_ptr + per_row + length - 1)
    added = tl.zeros([BLOCK_P, BLOCK_N], dtype=tl.float32)
    for first in range(0, length, BLOCK_K):
        row = first + tl.arange(0, BLOCK_K)
        long_row = row.to(tl.int64)
        used = row < length
        x = tl.load(
            x_ptr + channel[:, None].to(tl.int64) * stride_x_p + long_row[None, :] * stride_x_t,
            mask=(channel < headdim)[:, None] & used[None, :], other=0.0,
        )  # fmt: skip
        B = tl.load(
            B_ptr + long_row[:, None] * stride_b_t + column[None, :].to(tl.int64) * stride_b_n,
            mask=used[:, None] & (column < size)[None, :], other=0.0,
        )  # fmt: skip
        step = tl.load(step_ptr + per_row + row, mask=used, other=0.0)
        decay = tl.load(decay_ptr + per_row + row, mask=used, other=0.0)
        weight = step * tl.exp(tl.minimum(last - decay, 0.0))
        weighted = (x.to(tl.float32) * weight[None, :]).to(DTYPE)
        added = tl.dot(weighted, B.to(DTYPE), acc=added, input_precision="ieee")

    target = ((chunk * heads + head) * headdim + channel[:, None]) * size + column[None, :]
    tl.store(added_ptr + target, added, mask=(channel < headdim)[:, None] & (column < size)[None, :])


def chunk_states(arguments: SsdArguments, step: Tensor, decay: Tensor) -> Tensor:
    """(nchunks, H, P, N) float32: the state after each chunk had it started from zero."""
    x, B, metadata = arguments.x, arguments.B, arguments.metadata
    heads, headdim = x.shape[1:]
    groups, size = B.shape[1:]
    added = torch.empty((metadata.chunks, heads, headdim, size), dtype=torch.float32, device=x.device)
    launch(
        "ssd_chunk_state",
        _chunk_state_kernel,
        lambda blocks: (metadata.chunks, cdiv(headdim, blocks["BLOCK_P"]) * cdiv(size, blocks["BLOCK_N"]), heads),
        x_ptr=x, B_ptr=B, step_ptr=step, decay_ptr=decay, starts_ptr=metadata.cu_chunk_seqlens, added_ptr=added,
        heads=heads, headdim=headdim, size=size, heads_per_group=heads // groups,
        stride_x_t=x.stride(0), stride_x_h=x.stride(1), stride_x_p=x.stride(2),
        stride_b_t=B.stride(0), stride_b_g=B.stride(1), stride_b_n=B.stride(2),
        CHUNK=metadata.chunk_size, DTYPE=product_dtype(x),
    )  # fmt: skip
    return added
