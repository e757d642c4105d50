"""The causal convolution: a tile of tokens by channels a program, and a decode step that shifts each slot's history."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..arguments import ConvArguments, ConvUpdateArguments
from ..metadata import CONV_TILE_TOKENS
from ..results import ConvResult
from .launch import cdiv, launch, refuse_float64


@triton.jit
def _history(
    x_ptr, initial_ptr, place, channel, sequence, mask, channels, stride_x_t, stride_x_d, HISTORY: tl.constexpr
):
    # Inputs at `place`, counted from the sequence's first token, where x_ptr points; negative places are its history.
    value = tl.load(x_ptr + place * stride_x_t + channel * stride_x_d, mask=mask & (place >= 0), other=0.0).to(
        tl.float32
    )
    if initial_ptr is not None:
        source = initial_ptr + (sequence * channels + channel) * HISTORY + place + HISTORY
        value += tl.load(source, mask=mask & (place < 0), other=0.0).to(tl.float32)
    return value


@triton.jit
def _conv_prefill_kernel(
    x_ptr, weight_ptr, bias_ptr, initial_ptr, starts_ptr, sequence_ptr, tile_ptr, out_ptr, final_ptr,
    channels,
    stride_x_t, stride_x_d, stride_out_t, stride_out_d,
    WIDTH: tl.constexpr, SILU: tl.constexpr, TOKENS: tl.constexpr, BLOCK_D: tl.constexpr,
):  # fmt: skip
    HISTORY: tl.constexpr = WIDTH - 1
    program = tl.program_id(0).to(tl.int64)
    channel = (tl.program_id(1) * BLOCK_D + tl.arange(0, BLOCK_D))[None, :].to(tl.int64)
    wide = channel < channels
    sequence = tl.load(sequence_ptr + program).to(tl.int64)
    tile = tl.load(tile_ptr + program).to(tl.int64)
    start = tl.load(starts_ptr + sequence).to(tl.int64)
    length = tl.load(starts_ptr + sequence + 1).to(tl.int64) - start
    first = tile * TOKENS
    row = tl.arange(0, TOKENS)[:, None]
    inside = (row < length - first) & wide
    x_ptr += start * stride_x_t

    out = tl.zeros([TOKENS, BLOCK_D], dtype=tl.float32)
    if bias_ptr is not None:
        out += tl.load(bias_ptr + channel, mask=wide, other=0.0).to(tl.float32)
    if tile == 0:
        for tap in tl.static_range(WIDTH):
            weight = tl.load(weight_ptr + channel * WIDTH + tap, mask=wide, other=0.0).to(tl.float32)
            out += weight * _history(
                x_ptr,
                initial_ptr,
                row + (tap - HISTORY),
                channel,
                sequence,
                inside,
                channels,
                stride_x_t,
                stride_x_d,
                HISTORY,
            )
        for back in tl.static_range(HISTORY):
            end = tl.zeros([1, BLOCK_D], dtype=tl.int64) + length + (back - HISTORY)
            value = _history(
                x_ptr, initial_ptr, end, channel, sequence, wide, channels, stride_x_t, stride_x_d, HISTORY
            )
            kept = final_ptr + (sequence * channels + channel) * HISTORY + back
            tl.store(kept, value.to(final_ptr.dtype.element_ty), mask=wide)
    else:
        # Later tiles have all their history in x: plain wide loads.
        source = x_ptr + (first - HISTORY) * stride_x_t + row * stride_x_t + channel * stride_x_d
        for tap in tl.static_range(WIDTH):
            weight = tl.load(weight_ptr + channel * WIDTH + tap, mask=wide, other=0.0).to(tl.float32)
            out += weight * tl.load(source + tap * stride_x_t, mask=inside, other=0.0).to(tl.float32)
    if SILU:
        out *= tl.sigmoid(out)
    target = out_ptr + (start + first) * stride_out_t + row * stride_out_t + channel * stride_out_d
    tl.store(target, out.to(out_ptr.dtype.element_ty), mask=inside)


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
        out *= tl.sigmoid(out)
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
