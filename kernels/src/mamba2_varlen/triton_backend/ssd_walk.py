"""The scan in one launch: a program walks the tokens of one sequence for one head and keeps the state on chip.

Nothing but inputs, outputs and final states touches memory, and no program waits for another. Where too few sequences
would leave multiprocessors idle, long ones are cut: a program walks one segment, from the state that `ssd_pieces` found.
The outputs of a tile of rows are computed transposed, (P, rows): then the state (P, N) enters its product from registers
as it stands.
"""

import torch
import triton
import triton.language as tl

from ..arguments import SsdArguments
from ..results import SsdResult
from .gate import silu
from .launch import block_of, cdiv, launch, product_dtype
from .ssd_pieces import find_pieces, pieces_nest
from .step import step_size, sum_and_keep
from .tiles import is_pinned
from .walk_plan import cut_for, walk_is_shorter, walk_tile

# State columns at most: a program's 64 x 128 float32 are 64 registers a thread with four warps, and no more would fit.
MAX_STATE_SIZE = 128
# Offsets within a tile are 32-bit: rows of a tile times the largest token stride must stay below 2**31.
MAX_TOKEN_STRIDE = 1 << 23


@triton.jit
def _walk_kernel(
    x_ptr, dt_ptr, A_ptr, B_ptr, C_ptr, D_ptr, z_ptr, bias_ptr, initial_ptr,
    starts_ptr, order_ptr, first_chunk_ptr, states_ptr, decays_ptr, out_ptr, final_ptr, intermediate_ptr,
    heads, headdim, size, heads_per_group, low, high, cut_sequences, segments, segment_tokens, pieces_a_segment,
    stride_x_t, stride_x_h, stride_x_p, stride_dt_t, stride_dt_h, stride_b_t, stride_b_g, stride_b_n,
    stride_c_t, stride_c_g, stride_c_n, stride_z_t, stride_z_h, stride_z_p,
    stride_out_t, stride_out_h, stride_out_p, stride_d_h, stride_d_p,
    CHUNK: tl.constexpr, SOFTPLUS: tl.constexpr, DTYPE: tl.constexpr, BLOCK_N: tl.constexpr, EVEN: tl.constexpr,
    STAGES: tl.constexpr, BLOCK_Q: tl.constexpr, BLOCK_P: tl.constexpr,
):  # fmt: skip
    LOG2E: tl.constexpr = 1.4426950408889634
    head = tl.program_id(0).to(tl.int64)
    rank, segment = tl.program_id(1), 0
    if states_ptr is not None:
        # The cut sequences come first, with as many programs each as the longest has segments.
        is_cut = rank < cut_sequences * segments
        segment = tl.where(is_cut, rank % segments, 0)
        rank = tl.where(is_cut, rank // segments, rank - cut_sequences * (segments - 1))
    sequence = tl.load(order_ptr + rank).to(tl.int64)
    group = head // heads_per_group
    start = tl.load(starts_ptr + sequence).to(tl.int64)
    length = (tl.load(starts_ptr + sequence + 1).to(tl.int64) - start).to(tl.int32)
    begin, end = 0, length
    if states_ptr is not None:
        begin = segment * segment_tokens
        if begin > 0 and begin >= length:
            return
        end = tl.minimum(begin + segment_tokens, length)
    p = tl.program_id(2) * BLOCK_P + tl.arange(0, BLOCK_P)
    n = tl.arange(0, BLOCK_N)
    q = tl.arange(0, BLOCK_Q)
    wide, deep = p < headdim, n < size
    # Decays are powers of two, not of e: one instruction instead of two.
    A = tl.load(A_ptr + head).to(tl.float32) * LOG2E
    bias = 0.0
    if bias_ptr is not None:
        bias = tl.load(bias_ptr + head).to(tl.float32)
    per_head = headdim * size
    own = (sequence * heads + head) * per_head
    cell = p[:, None] * size + n[None, :]
    inside = wide[:, None] & deep[None, :]
    state = tl.zeros([BLOCK_P, BLOCK_N], dtype=tl.float32)
    if initial_ptr is not None:
        state = tl.load(initial_ptr + own + cell, mask=inside, other=0.0).to(tl.float32)
    if states_ptr is not None:
        pieces_before = segment * pieces_a_segment
        piece = rank.to(tl.int64) * (segments - 1) * pieces_a_segment * heads + head
        for _ in range(pieces_before):
            left = tl.load(states_ptr + piece * per_head + cell, mask=inside, other=0.0)
            state = state * tl.exp2(tl.load(decays_ptr + piece)) + left
            piece += heads
    skip = tl.zeros([BLOCK_P], dtype=tl.float32)
    if D_ptr is not None:
        skip = tl.load(D_ptr + head * stride_d_h + p * stride_d_p, mask=wide, other=0.0).to(tl.float32)

    dt_ptr += start * stride_dt_t + head * stride_dt_h
    x_ptr += start * stride_x_t + head * stride_x_h
    B_ptr += start * stride_b_t + group * stride_b_g
    C_ptr += start * stride_c_t + group * stride_c_g
    out_ptr += start * stride_out_t + head * stride_out_h
    if z_ptr is not None:
        z_ptr += start * stride_z_t + head * stride_z_h
    dt = tl.load(dt_ptr + (begin + q).to(tl.int64) * stride_dt_t, mask=begin + q < end, other=0.0).to(tl.float32)
    for first in tl.range(begin, end, BLOCK_Q, num_stages=STAGES):
        used = q < end - first
        at = tl.zeros([], dtype=tl.int64) + first
        row_mask, row_wide = used[:, None], used[:, None]
        if not EVEN:
            row_mask, row_wide = used[:, None] & deep[None, :], used[:, None] & wide[None, :]
        step = tl.where(used, step_size(dt, bias, low, high, SOFTPLUS), 0.0)
        # The next tile's dt is asked for a tile ahead: it is too small for the compiler's own pipeline.
        ahead = (at + BLOCK_Q) * stride_dt_t + q * stride_dt_t
        dt = tl.load(dt_ptr + ahead, mask=q < end - first - BLOCK_Q, other=0.0).to(tl.float32)
        decay, step = tl.associative_scan((step * A, step), 0, sum_and_keep)
        total = tl.sum(tl.where(q == BLOCK_Q - 1, decay, 0.0))

        B = tl.load(
            B_ptr + at * stride_b_t + q[:, None] * stride_b_t + n[None, :] * stride_b_n, mask=row_mask, other=0.0
        )
        C = tl.load(
            C_ptr + at * stride_c_t + q[:, None] * stride_c_t + n[None, :] * stride_c_n, mask=row_mask, other=0.0
        )
        x = tl.load(
            x_ptr + at * stride_x_t + q[:, None] * stride_x_t + p[None, :] * stride_x_p, mask=row_wide, other=0.0
        )
        B, C, x = B.to(DTYPE), C.to(DTYPE), x.to(DTYPE)
        # Rows are sources here, columns the rows that see them: rounding can order two nearly equal sums the wrong way
        # round, but a decay never grows.
        scores = tl.dot(B, tl.trans(C), input_precision="ieee")
        weight = scores * tl.exp2(tl.minimum(decay[None, :] - decay[:, None], 0.0)) * step[:, None]
        weight = tl.where(q[:, None] <= q[None, :], weight, 0.0)
        out = tl.dot(state.to(DTYPE), tl.trans(C), input_precision="ieee") * tl.exp2(decay)[None, :]
        out = tl.dot(tl.trans(x), weight.to(DTYPE), acc=out, input_precision="ieee")
        out = tl.trans(out)
        weighted = tl.trans(x).to(tl.float32) * (step * tl.exp2(tl.minimum(total - decay, 0.0)))[None, :]
        state = tl.dot(weighted.to(DTYPE), B, acc=state * tl.exp2(total), input_precision="ieee")

        if D_ptr is not None:
            out += skip[None, :] * x.to(tl.float32)
        if z_ptr is not None:
            gate = z_ptr + at * stride_z_t + q[:, None] * stride_z_t + p[None, :] * stride_z_p
            z = tl.load(gate, mask=row_wide, other=0.0).to(tl.float32)
            out *= silu(z)
        target = out_ptr + at * stride_out_t + q[:, None] * stride_out_t + p[None, :] * stride_out_p
        tl.store(target, out.to(out_ptr.dtype.element_ty), mask=row_wide)
        if intermediate_ptr is not None:  # noqa: SIM102  None is compiled in, the rest decided as it runs
            if ((first + BLOCK_Q) % CHUNK == 0) | (first + BLOCK_Q >= length):
                chunk = tl.load(first_chunk_ptr + sequence).to(tl.int64) + first // CHUNK
                kept = intermediate_ptr + (chunk * heads + head) * per_head + cell
                tl.store(kept, state.to(intermediate_ptr.dtype.element_ty), mask=inside)
    if states_ptr is not None:
        inside = inside & (end >= length)
    tl.store(final_ptr + own + cell, state.to(final_ptr.dtype.element_ty), mask=inside)


def serves(arguments: SsdArguments) -> bool:
    """Whether the walk runs this call: 16-bit inputs on a GPU, sizes it was made for; or a pinned tile asks for it.

    float32 products have no tensor cores that are exact enough, so they stay with the five stages.
    """
    x = arguments.x
    pinned = is_pinned("ssd_walk") or is_pinned("ssd_piece")
    wanted = pinned or (x.is_cuda and x.element_size() == 2 and walk_is_shorter(arguments))
    return wanted and arguments.B.shape[2] <= MAX_STATE_SIZE and _strides_fit(arguments) and _tiles_nest(arguments)


def walk(arguments: SsdArguments) -> SsdResult:
    """The scan of a call that `serves` accepts; see `mamba2_varlen.ssd_prefill`."""
    x, dt, B, C, D, z, out = (
        arguments.x, arguments.dt, arguments.B, arguments.C, arguments.D, arguments.z, arguments.out
    )  # fmt: skip
    metadata, initial, bias = arguments.metadata, arguments.initial_states, arguments.step.bias
    heads, headdim = x.shape[1:]
    groups, size = B.shape[1:]
    shape = (heads, headdim, size)
    final = torch.empty((metadata.sequences, *shape), dtype=arguments.state_dtype, device=x.device)
    kept = None
    if arguments.return_intermediate_states:
        kept = torch.empty((metadata.chunks, *shape), dtype=arguments.state_dtype, device=x.device)
    cut = cut_for(arguments)
    pieces = None if cut is None else find_pieces(arguments, cut)
    walked = metadata.sequences + (0 if cut is None else cut.sequences * (cut.segments - 1))
    tile = walk_tile(arguments, cut)
    z_strides = (0, 0, 0) if z is None else z.stride()
    d_strides = (0, 0) if D is None else (D.stride(0), D.stride(1) if D.dim() == 2 else 0)
    launch(
        "ssd_walk",
        _walk_kernel,
        lambda blocks: (heads, walked, cdiv(headdim, blocks["BLOCK_P"])),
        tile,
        x_ptr=x, dt_ptr=dt, A_ptr=arguments.A.contiguous(), B_ptr=B, C_ptr=C, D_ptr=D, z_ptr=z,
        bias_ptr=None if bias is None else bias.contiguous(),
        initial_ptr=None if initial is None else initial.contiguous(),
        starts_ptr=metadata.cu_seqlens, order_ptr=metadata.longest_first,
        first_chunk_ptr=metadata.first_chunk_of_sequence,
        states_ptr=None if pieces is None else pieces.states, decays_ptr=None if pieces is None else pieces.decays,
        out_ptr=out, final_ptr=final, intermediate_ptr=kept,
        heads=heads, headdim=headdim, size=size, heads_per_group=heads // groups,
        low=float(arguments.step.limit[0]), high=float(arguments.step.limit[1]),
        cut_sequences=0 if cut is None else cut.sequences, segments=1 if cut is None else cut.segments,
        segment_tokens=0 if cut is None else cut.segment,
        pieces_a_segment=0 if cut is None else cut.segment // cut.piece,
        stride_x_t=x.stride(0), stride_x_h=x.stride(1), stride_x_p=x.stride(2),
        stride_dt_t=dt.stride(0), stride_dt_h=dt.stride(1),
        stride_b_t=B.stride(0), stride_b_g=B.stride(1), stride_b_n=B.stride(2),
        stride_c_t=C.stride(0), stride_c_g=C.stride(1), stride_c_n=C.stride(2),
        stride_z_t=z_strides[0], stride_z_h=z_strides[1], stride_z_p=z_strides[2],
        stride_out_t=out.stride(0), stride_out_h=out.stride(1), stride_out_p=out.stride(2),
        stride_d_h=d_strides[0], stride_d_p=d_strides[1],
        CHUNK=metadata.chunk_size, SOFTPLUS=arguments.step.softplus, DTYPE=product_dtype(x),
        BLOCK_N=block_of(size, 16), EVEN=headdim % tile.block("BLOCK_P") == 0 and size == block_of(size, 16),
        STAGES=tile.num_stages,
    )  # fmt: skip
    return SsdResult(out, final, kept)


def _strides_fit(arguments: SsdArguments) -> bool:
    tensors = (arguments.x, arguments.dt, arguments.B, arguments.C, arguments.out, arguments.z)
    return all(tensor is None or tensor.stride(0) < MAX_TOKEN_STRIDE for tensor in tensors)


def _tiles_nest(arguments: SsdArguments) -> bool:
    """States are reported at chunks' ends, so then a chunk must end where a tile does."""
    rows = walk_tile(arguments, None).block("BLOCK_Q")
    chunks_fit = not arguments.return_intermediate_states or arguments.metadata.chunk_size % rows == 0
    return chunks_fit and pieces_nest(rows)
