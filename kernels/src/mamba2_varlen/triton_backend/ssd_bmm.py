"""Stage 4: how much each row sees of each earlier row of its chunk, before decay: C times B transposed."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..arguments import SsdArguments
from .launch import cdiv, launch, product_dtype


@triton.jit
def _bmm_kernel(
    C_ptr, B_ptr, starts_ptr, scores_ptr,
    groups, size,
    stride_c_t, stride_c_g, stride_c_n, stride_b_t, stride_b_g, stride_b_n,
    CHUNK: tl.constexpr, DTYPE: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    chunk = tl.program_id(0).to(tl.int64)
    group = tl.program_id(2).to(tl.int64)
    blocks_n = tl.cdiv(CHUNK, BLOCK_N)
    first_row = (tl.program_id(1) // blocks_n) * BLOCK_M
    first_column = (tl.program_id(1) % blocks_n) * BLOCK_N
    start = tl.load(starts_ptr + chunk).to(tl.int64)
    length = (tl.load(starts_ptr + chunk + 1).to(tl.int64) - start).to(tl.int32)
    # Tiles wholly after the diagonal or past the chunk's end are never read.
    if (first_column < first_row + BLOCK_M) & (first_row < length):
        row = first_row + tl.arange(0, BLOCK_M)
        column = first_column + tl.arange(0, BLOCK_N)
        C_row = C_ptr + group * stride_c_g + (start + row)[:, None] * stride_c_t
        B_row = B_ptr + group * stride_b_g + (start + column)[None, :] * stride_b_t
        scores = tl.zeros([BLOCK_M, BLOCK_N], dtype=tl.float32)
        for first in range(0, size, BLOCK_K):
            k = first + tl.arange(0, BLOCK_K)
            C_mask = (row < length)[:, None] & (k < size)[None, :]
            B_mask = (k < size)[:, None] & (column < length)[None, :]
            C = tl.load(C_row + k[None, :].to(tl.int64) * stride_c_n, mask=C_mask, other=0.0)
            B = tl.load(B_row + k[:, None].to(tl.int64) * stride_b_n, mask=B_mask, other=0.0)
            scores = tl.dot(C.to(DTYPE), B.to(DTYPE), acc=scores, input_precision="ieee")
        target = scores_ptr + ((chunk * groups + group) * CHUNK + row[:, None]) * CHUNK + column[None, :]
        tl.store(target, scores, mask=(row < CHUNK)[:, None] & (column < CHUNK)[None, :])


def chunk_scores(arguments: SsdArguments) -> Tensor:
    """(nchunks, G, chunk_size, chunk_size) float32, written only where the scan reads: up to the diagonal's tiles."""
    B, C, metadata = arguments.B, arguments.C, arguments.metadata
    groups, size = B.shape[1:]
    chunk = metadata.chunk_size
    scores = torch.empty((metadata.chunks, groups, chunk, chunk), dtype=torch.float32, device=B.device)
    launch(
        "ssd_bmm",
        _bmm_kernel,
        lambda blocks: (metadata.chunks, cdiv(chunk, blocks["BLOCK_M"]) * cdiv(chunk, blocks["BLOCK_N"]), groups),
        C_ptr=C, B_ptr=B, starts_ptr=metadata.cu_chunk_seqlens, scores_ptr=scores, groups=groups, size=size,
        stride_c_t=C.stride(0), stride_c_g=C.stride(1), stride_c_n=C.stride(2),
        stride_b_t=B.stride(0), stride_b_g=B.stride(1), stride_b_n=B.stride(2),
        CHUNK=chunk, DTYPE=product_dtype(arguments.x),
    )  # fmt: skip
    return scores
