"""The causal convolution: some tokens of some channels a program, row by row, and a decode step that shifts each slot's history."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..arguments import ConvArguments, ConvUpdateArguments
from ..metadata import CONV_TILE_TOKENS
from ..results import ConvResult
from .gate import silu
from .launch import cdiv, launch, refuse_float64


@triton.jit
def _input(x_ptr, initial_ptr, place, channel, sequence, wide, channels, stride_x_t, stride_x_d, HISTORY: tl.constexpr):
    # One row of inputs at `place`, counted from the sequence's first token, where x_ptr points. Negative places are its
    # history, which ends HISTORY rows before the sequence.
    value = tl.load(x_ptr + place * stride_x_t + channel * stride_x_d, mask=wide & (place >= 0), other=0.0).to(
        tl.float32
    )
    if initial_ptr is not None:
        source = initial_ptr + (sequence * channels + channel) * HISTORY + place + HISTORY
        value += tl.load(source, mask=wide & (place < 0) & (place >= -HISTORY), other=0.0).to(tl.float32)
    return value


@triton.jit
def _tap(weight_ptr, channel, wide, tap, WIDTH: tl.constexpr):
    # Weights of one of four taps; a narrower convolution has zeros in its oldest ones.
    index = tap - (4 - WIDTH)
    return tl.load(weight_ptr + channel * WIDTH + index, mask=wide & (index >= 0), other=0.0).to(tl.float32)


@triton.jit
def _activated(out, SILU: tl.constexpr):
    if SILU:
        out = silu(out)
    return out


@triton.jit
def _conv_prefill_kernel(
    x_ptr, weight_ptr, bias_ptr, initial_ptr, starts_ptr, sequence_ptr, tile_ptr, out_ptr, final_ptr,
    channels,
    stride_x_t, stride_x_d, stride_out_t, stride_out_d,
    WIDTH: tl.constexpr, SILU: tl.constexpr, TOKENS: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    HISTORY: tl.constexpr = WIDTH - 1
    program = tl.program_id(0).to(tl.int64)
    channel = (tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)).to(tl.int64)
    wide = channel < channels
    sequence = tl.load(sequence_ptr + program).to(tl.int64)
    tile = tl.load(tile_ptr + program).to(tl.int64)
    start = tl.load(starts_ptr + sequence).to(tl.int64)
    length = tl.load(starts_ptr + sequence + 1).to(tl.int64) - start
    first = tile * TOKENS
    x_ptr += start * stride_x_t

    w0, w1 = _tap(weight_ptr, channel, wide, 0, WIDTH), _tap(weight_ptr, channel, wide, 1, WIDTH)
    w2, w3 = _tap(weight_ptr, channel, wide, 2, WIDTH), _tap(weight_ptr, channel, wide, 3, WIDTH)
    bias = tl.zeros([BLOCK_D], dtype=tl.float32)
    if bias_ptr is not None:
        bias += tl.load(bias_ptr + channel, mask=wide, other=0.0).to(tl.float32)
    a = _input(x_ptr, initial_ptr, first - 3, channel, sequence, wide, channels, stride_x_t, stride_x_d, HISTORY)
    b = _input(x_ptr, initial_ptr, first - 2, channel, sequence, wide, channels, stride_x_t, stride_x_d, HISTORY)
    c = _input(x_ptr, initial_ptr, first - 1, channel, sequence, wide, channels, stride_x_t, stride_x_d, HISTORY)
    row = x_ptr + first * stride_x_t + channel * stride_x_d
    target = out_ptr + (start + first) * stride_out_t + channel * stride_out_d
    # Every input is read and converted once; four rows are asked for before the first is used, since no load may pass
    # the stores of the rows before.
    for at in range(0, TOKENS, 4):
        left = length - first - at
        m0, m1, m2, m3 = wide & (left > 0), wide & (left > 1), wide & (left > 2), wide & (left > 3)
        d = tl.load(row, mask=m0, other=0.0).to(tl.float32)
        e = tl.load(row + stride_x_t, mask=m1, other=0.0).to(tl.float32)
        f = tl.load(row + 2 * stride_x_t, mask=m2, other=0.0).to(tl.float32)
        g = tl.load(row + 3 * stride_x_t, mask=m3, other=0.0).to(tl.float32)
        DTYPE: tl.constexpr = out_ptr.dtype.element_ty
        tl.store(target, _activated(bias + w0 * a + w1 * b + w2 * c + w3 * d, SILU).to(DTYPE), mask=m0)
        tl.store(target + stride_out_t, _activated(bias + w0 * b + w1 * c + w2 * d + w3 * e, SILU).to(DTYPE), mask=m1)
        tl.store(
            target + 2 * stride_out_t, _activated(bias + w0 * c + w1 * d + w2 * e + w3 * f, SILU).to(DTYPE), mask=m2
        )
        tl.store(
            target + 3 * stride_out_t, _activated(bias + w0 * d + w1 * e + w2 * f + w3 * g, SILU).to(DTYPE), mask=m3
        )
        a, b, c = e, f, g
        row += 4 * stride_x_t
        target += 4 * stride_out_t

    if tile == 0:
        for back in tl.static_range(HISTORY):
            end = length + (back - HISTORY)
            value = _input(x_ptr, initial_ptr, end, channel, sequence, wide, channels, stride_x_t, stride_x_d, HISTORY)
            kept = final_ptr + (sequence * channels + channel) * HISTORY + back
            tl.store(kept, value.to(final_ptr.dtype.element_ty), mask=wide)


@triton.jit
def _conv_update_kernel(
    x_ptr, state_ptr, weight_ptr, bias_ptr, slot_ptr, out_ptr,
    channels, slots,
    stride_x_b, stride_x_d, stride_s_b, stride_s_d, stride_s_w,
    WIDTH: tl.constexpr, SILU: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0).to(tl.int64)
    channel = tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D)
    wide = channel < channels
    lane = channel.to(tl.int64)
    slot = row
    if slot_ptr is not None:
        slot = tl.load(slot_ptr + row).to(tl.int64)
    live = wide & (slot >= 0) & (slot < slots)
    history = state_ptr + slot * stride_s_b + lane * stride_s_d

    x = tl.load(x_ptr + row * stride_x_b + lane * stride_x_d, mask=live, other=0.0)
    out = x.to(tl.float32) * tl.load(weight_ptr + channel * WIDTH + WIDTH - 1, mask=wide, other=0.0).to(tl.float32)
    if bias_ptr is not None:
        out += tl.load(bias_ptr + channel, mask=wide, other=0.0).to(tl.float32)
    for tap in tl.static_range(WIDTH - 1):
        value = tl.load(history + tap * stride_s_w, mask=live, other=0.0)
        out += value.to(tl.float32) * tl.load(weight_ptr + channel * WIDTH + tap, mask=wide, other=0.0).to(tl.float32)
        # Each value is read before its place is overwritten: a tap writes only the place before its own.
        if tap > 0:
            tl.store(history + (tap - 1) * stride_s_w, value, mask=live)
    tl.store(history + (WIDTH - 2) * stride_s_w, x.to(state_ptr.dtype.element_ty), mask=live)
    if SILU:
        out = silu(out)
    out = tl.where(live, out, 0.0)
    tl.store(out_ptr + row * channels + lane, out.to(out_ptr.dtype.element_ty), mask=wide)


def causal_conv1d_prefill(arguments: ConvArguments) -> ConvResult:
    """See `mamba2_varlen.causal_conv1d_prefill`."""
    x, out, metadata, bias = arguments.x, arguments.out, arguments.metadata, arguments.bias
    refuse_float64(x)
    channels, width = arguments.weight.shape
    initial = arguments.initial_states
    final = torch.empty((metadata.sequences, channels, width - 1), dtype=x.dtype, device=x.device)
    launch(
        "conv_prefill",
        _conv_prefill_kernel,
        lambda blocks: (metadata.conv_sequence.shape[0], cdiv(channels, blocks["BLOCK_D"])),
        x_ptr=x, weight_ptr=arguments.weight.contiguous(), bias_ptr=None if bias is None else bias.contiguous(),
        initial_ptr=None if initial is None else initial.contiguous(), starts_ptr=metadata.cu_seqlens,
        sequence_ptr=metadata.conv_sequence, tile_ptr=metadata.conv_tile, out_ptr=out, final_ptr=final,
        channels=channels,
        stride_x_t=x.stride(0), stride_x_d=x.stride(1), stride_out_t=out.stride(0), stride_out_d=out.stride(1),
        WIDTH=width, SILU=arguments.activation is not None, TOKENS=CONV_TILE_TOKENS,
    )  # fmt: skip
    return ConvResult(out, final)


def causal_conv1d_update(arguments: ConvUpdateArguments) -> Tensor:
    """See `mamba2_varlen.causal_conv1d_update`."""
    x, state, bias = arguments.x, arguments.conv_state, arguments.bias
    refuse_float64(x)
    rows, channels = x.shape
    out = torch.empty((rows, channels), dtype=x.dtype, device=x.device)
    indices = arguments.state_indices
    launch(
        "conv_update",
        _conv_update_kernel,
        lambda blocks: (rows, cdiv(channels, blocks["BLOCK_D"])),
        x_ptr=x, state_ptr=state, weight_ptr=arguments.weight.contiguous(),
        bias_ptr=None if bias is None else bias.contiguous(),
        slot_ptr=None if indices is None else indices.contiguous(),
        out_ptr=out, channels=channels, slots=state.shape[0], stride_x_b=x.stride(0), stride_x_d=x.stride(1),
        stride_s_b=state.stride(0), stride_s_d=state.stride(1), stride_s_w=state.stride(2),
        WIDTH=arguments.weight.shape[1], SILU=arguments.activation is not None,
    )  # fmt: skip
    return out
