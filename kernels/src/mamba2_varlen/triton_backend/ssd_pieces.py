"""What pieces of a long sequence do to the state, all at once: the state each leaves when it starts from zero, and how
much is left of the state it started from. A segment of the walk then starts where the pieces before it end.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..arguments import SsdArguments
from .launch import block_of, cdiv, launch, product_dtype
from .step import step_size, sum_and_keep
from .tiles import Tile, is_pinned, tile_for
from .walk_plan import Cut


@dataclass(frozen=True)
class Pieces:
    """Of the r cut sequences, longest first.

    Attributes:
        states: (r, pieces, H, P, N) float32, the state that a piece leaves from zero; unset for pieces that no segment
            follows.
        decays: (r, pieces, H) float32, the power of two by which a piece shrinks the state it starts from.
    """

    cut: Cut
    states: Tensor
    decays: Tensor


@triton.jit
def _piece_kernel(
    x_ptr, dt_ptr, A_ptr, B_ptr, bias_ptr, starts_ptr, order_ptr, states_ptr, decays_ptr,
    heads, headdim, size, heads_per_group, low, high, segment_tokens, piece_tokens, pieces,
    stride_x_t, stride_x_h, stride_x_p, stride_dt_t, stride_dt_h, stride_b_t, stride_b_g, stride_b_n,
    SOFTPLUS: tl.constexpr, DTYPE: tl.constexpr, BLOCK_N: tl.constexpr, EVEN: tl.constexpr, STAGES: tl.constexpr,
    BLOCK_Q: tl.constexpr, BLOCK_P: tl.constexpr,
):  # fmt: skip
    LOG2E: tl.constexpr = 1.4426950408889634
    head = tl.program_id(0).to(tl.int64)
    rank = tl.program_id(1) // pieces
    piece = tl.program_id(1) % pieces
    sequence = tl.load(order_ptr + rank).to(tl.int64)
    group = head // heads_per_group
    start = tl.load(starts_ptr + sequence).to(tl.int64)
    length = (tl.load(starts_ptr + sequence + 1).to(tl.int64) - start).to(tl.int32)
    begin = piece * piece_tokens
    # Only a piece whose segment is followed by another is asked for; such a piece is whole.
    if (begin // segment_tokens + 1) * segment_tokens < length:
        p = tl.program_id(2) * BLOCK_P + tl.arange(0, BLOCK_P)
        n = tl.arange(0, BLOCK_N)
        q = tl.arange(0, BLOCK_Q)
        wide, deep = p < headdim, n < size
        A = tl.load(A_ptr + head).to(tl.float32) * LOG2E
        bias = 0.0
        if bias_ptr is not None:
            bias = tl.load(bias_ptr + head).to(tl.float32)
        dt_ptr += start * stride_dt_t + head * stride_dt_h
        x_ptr += start * stride_x_t + head * stride_x_h
        B_ptr += start * stride_b_t + group * stride_b_g
        state = tl.zeros([BLOCK_P, BLOCK_N], dtype=tl.float32)
        shrunk = tl.zeros([], dtype=tl.float32)
        end = begin + piece_tokens
        dt = tl.load(dt_ptr + (begin + q).to(tl.int64) * stride_dt_t).to(tl.float32)
        for first in tl.range(begin, end, BLOCK_Q, num_stages=STAGES):
            at = tl.zeros([], dtype=tl.int64) + first
            step = step_size(dt, bias, low, high, SOFTPLUS)
            ahead = (at + BLOCK_Q + q) * stride_dt_t
            dt = tl.load(dt_ptr + ahead, mask=first + BLOCK_Q + q < end, other=0.0).to(tl.float32)
            decay, step = tl.associative_scan((step * A, step), 0, sum_and_keep)
            total = tl.sum(tl.where(q == BLOCK_Q - 1, decay, 0.0))
            b_at = B_ptr + at * stride_b_t + q[:, None] * stride_b_t + n[None, :] * stride_b_n
            x_at = x_ptr + at * stride_x_t + q[:, None] * stride_x_t + p[None, :] * stride_x_p
            if EVEN:
                B, x = tl.load(b_at), tl.load(x_at)
            else:
                B = tl.load(b_at, mask=deep[None, :], other=0.0)
                x = tl.load(x_at, mask=wide[None, :], other=0.0)
            weighted = tl.trans(x).to(tl.float32) * (step * tl.exp2(tl.minimum(total - decay, 0.0)))[None, :]
            state = tl.dot(weighted.to(DTYPE), B.to(DTYPE), acc=state * tl.exp2(total), input_precision="ieee")
            shrunk += total
        kept = tl.program_id(1).to(tl.int64) * heads + head
        cell = p[:, None] * size + n[None, :]
        tl.store(states_ptr + kept * headdim * size + cell, state, mask=wide[:, None] & deep[None, :])
        if tl.program_id(2) == 0:
            tl.store(decays_ptr + kept, shrunk)


def find_pieces(arguments: SsdArguments, cut: Cut) -> Pieces:
    """The pieces before the last segment of every sequence that `cut` cuts."""
    x, dt, B, bias, metadata = (
        arguments.x, arguments.dt, arguments.B, arguments.step.bias, arguments.metadata
    )  # fmt: skip
    heads, headdim = x.shape[1:]
    groups, size = B.shape[1:]
    tile = tile_for("ssd_piece")
    shape = (cut.sequences, cut.pieces, heads)
    states = torch.empty((*shape, headdim, size), dtype=torch.float32, device=x.device)
    decays = torch.empty(shape, dtype=torch.float32, device=x.device)
    launch(
        "ssd_piece",
        _piece_kernel,
        lambda blocks: (heads, cut.sequences * cut.pieces, cdiv(headdim, blocks["BLOCK_P"])),
        _without_lengths(tile),
        x_ptr=x, dt_ptr=dt, A_ptr=arguments.A.contiguous(), B_ptr=B,
        bias_ptr=None if bias is None else bias.contiguous(),
        starts_ptr=metadata.cu_seqlens, order_ptr=metadata.longest_first, states_ptr=states, decays_ptr=decays,
        heads=heads, headdim=headdim, size=size, heads_per_group=heads // groups,
        low=float(arguments.step.limit[0]), high=float(arguments.step.limit[1]),
        segment_tokens=cut.segment, piece_tokens=cut.piece, pieces=cut.pieces,
        stride_x_t=x.stride(0), stride_x_h=x.stride(1), stride_x_p=x.stride(2),
        stride_dt_t=dt.stride(0), stride_dt_h=dt.stride(1),
        stride_b_t=B.stride(0), stride_b_g=B.stride(1), stride_b_n=B.stride(2),
        SOFTPLUS=arguments.step.softplus, DTYPE=product_dtype(x), BLOCK_N=block_of(size, 16),
        EVEN=headdim % tile.block("BLOCK_P") == 0 and size == block_of(size, 16), STAGES=tile.num_stages,
    )  # fmt: skip
    return Pieces(cut, states, decays)


def pieces_nest(walk_rows: int) -> bool:
    """Whether segments and pieces hold whole tiles of both kernels; only a pinned tile can say otherwise."""
    if not is_pinned("ssd_piece"):
        return True
    tile = tile_for("ssd_piece")
    segment, piece, rows = (tile.block(name) for name in ("SEGMENT", "PIECE", "BLOCK_Q"))
    return segment % piece == 0 and piece % rows == 0 and segment % walk_rows == 0


def _without_lengths(tile: Tile) -> Tile:
    """The tile as the kernel takes it: lengths reach it as numbers, so that another length compiles nothing."""
    return Tile(
        tuple(block for block in tile.blocks if block[0].startswith("BLOCK_")),
        tile.num_warps,
        tile.num_stages,
        tile.max_registers,
    )
