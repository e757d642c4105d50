"""Stage 5: each row's output from the state that entered its chunk and from the rows before it, one row tile a
program."""

import triton
import triton.language as tl
from torch import Tensor

from ..arguments import SsdArguments
from .launch import cdiv, launch, product_dtype


@triton.jit
def _carried_decay(decay):
    # What is left at each row of the state that entered the chunk, counted from the chunk's start.
    return tl.exp(decay)


@triton.jit
def _chunk_scan_kernel(
    x_ptr, C_ptr, D_ptr, z_ptr, states_ptr, scores_ptr, step_ptr, decay_ptr,
    starts_ptr, sequence_ptr, first_ptr, out_ptr,
    heads, headdim, size, groups,
    stride_x_t, stride_x_h, stride_x_p, stride_c_t, stride_c_g, stride_c_n,
    stride_z_t, stride_z_h, stride_z_p, stride_out_t, stride_out_h, stride_out_p, stride_d_h, stride_d_p,
    CHUNK: tl.constexpr, HAS_INITIAL: tl.constexpr, DTYPE: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_P: tl.constexpr, BLOCK_K: tl.constexpr, BLOCK_N: tl.constexpr,
):  # fmt: skip
    chunk = tl.program_id(0).to(tl.int64)
    head = tl.program_id(2).to(tl.int64)
    group = head // (heads // groups)
    blocks_p = tl.cdiv(headdim, BLOCK_P)
    first_row = (tl.program_id(1) // blocks_p) * BLOCK_M
    row = first_row + tl.arange(0, BLOCK_M)
    channel = (tl.program_id(1) % blocks_p) * BLOCK_P + tl.arange(0, BLOCK_P)
    start = tl.load(starts_ptr + chunk).to(tl.int64)
    length = (tl.load(starts_ptr + chunk + 1).to(tl.int64) - start).to(tl.int32)
    is_first = chunk == tl.load(first_ptr + tl.load(sequence_ptr + chunk))
    if first_row < length:
        used, wide = row < length, channel < headdim
        inside = used[:, None] & wide[None, :]
        token = (start + row)[:, None]
        lane = channel[None, :].to(tl.int64)
        per_row = (chunk * heads + head) * CHUNK
        decay = tl.load(decay_ptr + per_row + row, mask=used, other=0.0)
        out = tl.zeros([BLOCK_M, BLOCK_P], dtype=tl.float32)

        # A sequence's first chunk has nothing to carry unless an initial state was given.
        if HAS_INITIAL or not is_first:
            for first in range(0, size, BLOCK_N):
                n = first + tl.arange(0, BLOCK_N)
                C = tl.load(
                    C_ptr + group * stride_c_g + token * stride_c_t + n[None, :].to(tl.int64) * stride_c_n,
                    mask=used[:, None] & (n < size)[None, :], other=0.0,
                )  # fmt: skip
                state = tl.load(
                    states_ptr + ((chunk * heads + head) * headdim + lane) * size + n[:, None],
                    mask=(n < size)[:, None] & wide[None, :], other=0.0,
                )  # fmt: skip
                out = tl.dot(C.to(DTYPE), state.to(DTYPE), acc=out, input_precision="ieee")
            out = out * _carried_decay(decay)[:, None]

        scores_row = scores_ptr + ((chunk * groups + group) * CHUNK + row[:, None]) * CHUNK
        for first in range(0, tl.minimum(first_row + BLOCK_M, length), BLOCK_K):
            source = first + tl.arange(0, BLOCK_K)
            known = source < length
            causal = (row[:, None] >= source[None, :]) & used[:, None]
            scores = tl.load(scores_row + source[None, :], mask=causal, other=0.0)
            step = tl.load(step_ptr + per_row + source, mask=known, other=0.0)
            past = tl.load(decay_ptr + per_row + source, mask=known, other=0.0)
            weight = scores * tl.exp(tl.minimum(decay[:, None] - past[None, :], 0.0)) * step[None, :]
            x = tl.load(
                x_ptr + (start + source)[:, None] * stride_x_t + head * stride_x_h + lane * stride_x_p,
                mask=known[:, None] & wide[None, :], other=0.0,
            )  # fmt: skip
            out = tl.dot(tl.where(causal, weight, 0.0).to(DTYPE), x.to(DTYPE), acc=out, input_precision="ieee")

        if D_ptr is not None:
            skip = tl.load(D_ptr + head * stride_d_h + lane * stride_d_p, mask=wide[None, :], other=0.0).to(tl.float32)
            x = tl.load(x_ptr + token * stride_x_t + head * stride_x_h + lane * stride_x_p, mask=inside, other=0.0)
            out += skip * x.to(tl.float32)
        if z_ptr is not None:
            z = tl.load(z_ptr + token * stride_z_t + head * stride_z_h + lane * stride_z_p, mask=inside, other=0.0).to(
                tl.float32
            )
            out *= z * tl.sigmoid(z)
        target = out_ptr + token * stride_out_t + head * stride_out_h + lane * stride_out_p
        tl.store(target, out.to(out_ptr.dtype.element_ty), mask=inside)


def chunk_scan(arguments: SsdArguments, states: Tensor, scores: Tensor, step: Tensor, decay: Tensor) -> None:
    """Write `arguments.out` from states (nchunks, H, P, N) entering chunks, scores, step sizes and decays."""
    x, C, z, D, out, metadata = (
        arguments.x, arguments.C, arguments.z, arguments.D, arguments.out, arguments.metadata
    )  # fmt: skip
    heads, headdim = x.shape[1:]
    groups, size = C.shape[1:]
    z_strides = (0, 0, 0) if z is None else z.stride()
    d_strides = (0, 0) if D is None else (D.stride(0), D.stride(1) if D.dim() == 2 else 0)

    def tiles_of(blocks: dict[str, int]) -> int:
        return cdiv(metadata.chunk_size, blocks["BLOCK_M"]) * cdiv(headdim, blocks["BLOCK_P"])

    launch(
        "ssd_chunk_scan",
        _chunk_scan_kernel,
        lambda blocks: (metadata.chunks, tiles_of(blocks), heads),
        x_ptr=x, C_ptr=C, D_ptr=D, z_ptr=z, states_ptr=states, scores_ptr=scores, step_ptr=step, decay_ptr=decay,
        starts_ptr=metadata.cu_chunk_seqlens, sequence_ptr=metadata.chunk_to_sequence,
        first_ptr=metadata.first_chunk_of_sequence, out_ptr=out,
        heads=heads, headdim=headdim, size=size, groups=groups,
        stride_x_t=x.stride(0), stride_x_h=x.stride(1), stride_x_p=x.stride(2),
        stride_c_t=C.stride(0), stride_c_g=C.stride(1), stride_c_n=C.stride(2),
        stride_z_t=z_strides[0], stride_z_h=z_strides[1], stride_z_p=z_strides[2],
        stride_out_t=out.stride(0), stride_out_h=out.stride(1), stride_out_p=out.stride(2),
        stride_d_h=d_strides[0], stride_d_p=d_strides[1],
        CHUNK=metadata.chunk_size, HAS_INITIAL=arguments.initial_states is not None, DTYPE=product_dtype(x),
    )  # fmt: skip
