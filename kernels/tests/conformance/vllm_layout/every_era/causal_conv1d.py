"""The convolution with vLLM's signature, metadata and launch: its grid writes into the kernel's arguments."""

import torch
from vllm.attention.backends.utils import PAD_SLOT_ID
from vllm.triton_utils import tl, triton


@triton.jit()
def _causal_conv1d_fwd_kernel(
    x_ptr,
    w_ptr,
    bias_ptr,
    states_ptr,
    slots_ptr,
    past_ptr,
    starts_ptr,
    batch_ptr,
    token_chunk_offset_ptr,
    o_ptr,
    dim,
    stride_x_dim,
    stride_x_token,
    stride_state_slot,
    stride_state_dim,
    stride_state_token,
    stride_o_dim,
    stride_o_token,
    HAS_BIAS: tl.constexpr,
    SILU: tl.constexpr,
    WIDTH: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
):
    sequence = tl.load(batch_ptr + tl.program_id(0))
    first = tl.load(token_chunk_offset_ptr + tl.program_id(0)) * BLOCK_M
    start = tl.load(starts_ptr + sequence)
    length = tl.load(starts_ptr + sequence + 1) - start
    slot = tl.load(slots_ptr + sequence).to(tl.int64)
    past = tl.load(past_ptr + sequence).to(tl.int1)
    channels = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    known = channels < dim
    state_ptr = states_ptr + slot * stride_state_slot + channels * stride_state_dim
    for token in range(first, tl.minimum(first + BLOCK_M, length)):
        acc = tl.zeros((BLOCK_N,), dtype=tl.float32)
        if HAS_BIAS:
            acc += tl.load(bias_ptr + channels, mask=known)
        for tap in range(WIDTH):
            back = token + tap - (WIDTH - 1)
            new = tl.load(x_ptr + (start + back) * stride_x_token + channels * stride_x_dim, known & (back >= 0), 0.0)
            old = tl.load(state_ptr + (back + WIDTH - 1) * stride_state_token, known & (back < 0) & past, 0.0)
            acc += (new + old) * tl.load(w_ptr + channels * WIDTH + tap, mask=known)
        if SILU:
            acc = acc / (1 + tl.exp(-acc))
        tl.store(o_ptr + (start + token) * stride_o_token + channels * stride_o_dim, acc, mask=known)


def causal_conv1d_fn(
    x,
    weight,
    bias,
    conv_states,
    query_start_loc,
    cache_indices=None,
    has_initial_state=None,
    activation="silu",
    pad_slot_id=PAD_SLOT_ID,
    metadata=None,
    validate_data=False,
):
    dim, width = weight.shape
    out = torch.empty_like(x)

    def grid(META):
        entry = metadata.nums_dict[META["BLOCK_M"]]
        META["batch_ptr"] = entry["batch_ptr"]
        META["token_chunk_offset_ptr"] = entry["token_chunk_offset_ptr"]
        return (entry["tot"], triton.cdiv(dim, META["BLOCK_N"]))

    nothing = torch.full_like(metadata.batch_ptr, PAD_SLOT_ID)
    _causal_conv1d_fwd_kernel[grid](
        x, weight, bias, conv_states, cache_indices, has_initial_state, query_start_loc, nothing, nothing, out,
        dim, *x.stride(), *conv_states.stride(), *out.stride(),
        HAS_BIAS=bias is not None, SILU=activation in ("silu", "swish"), WIDTH=width, BLOCK_M=8, BLOCK_N=64,
    )  # fmt: skip
    for sequence, slot in enumerate(cache_indices.tolist()):
        start, end = query_start_loc[sequence : sequence + 2].tolist()
        past = conv_states[slot].clone() if has_initial_state[sequence] else torch.zeros_like(conv_states[slot])
        conv_states[slot] = torch.cat([past, x[:, start:end]], 1)[:, end - start :]
    return out


def causal_conv1d_update(
    x,
    conv_state,
    weight,
    bias=None,
    activation=None,
    cache_seqlens=None,
    conv_state_indices=None,
    pad_slot_id=PAD_SLOT_ID,
    metadata=None,
    validate_data=False,
):
    """Writes over x, and returns it."""
    slots = range(len(x)) if conv_state_indices is None else conv_state_indices.tolist()
    for row, slot in enumerate(slots):
        if slot == pad_slot_id:
            continue
        seen = torch.cat([conv_state[slot], x[row][:, None]], 1)
        conv_state[slot] = seen[:, 1:]
        value = (seen * weight).sum(1) + (0 if bias is None else bias)
        x[row] = torch.nn.functional.silu(value) if activation in ("silu", "swish") else value
    return x
