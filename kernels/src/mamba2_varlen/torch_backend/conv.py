"""The causal convolution as one multiply-add per tap over the packed tokens, each sequence behind its own history."""

import torch
from torch import Tensor
from torch.nn.functional import silu

from ..arguments import ConvArguments, ConvUpdateArguments
from ..results import ConvResult
from .slots import gather, kept_rows, scatter
from .step import compute_dtype


def causal_conv1d_prefill(arguments: ConvArguments) -> ConvResult:
    """See `mamba2_varlen.causal_conv1d_prefill`."""
    metadata, dtype = arguments.metadata, compute_dtype(arguments.x)
    history = arguments.weight.shape[1] - 1
    sequences = metadata.sequences
    inputs = _with_history(arguments, dtype)
    ends = metadata.cu_seqlens[1:].long() + torch.arange(1, sequences + 1, device=metadata.device) * history
    last = ends[:, None] + torch.arange(-history, 0, device=metadata.device)
    final = inputs.index_select(0, last.flatten()).unflatten(0, (sequences, history)).transpose(1, 2)
    if metadata.tokens:
        out = _convolve(inputs, arguments, dtype)
        arguments.out.copy_(out if sequences == 1 else out.index_select(0, _token_rows(arguments) - history))
    return ConvResult(arguments.out, final.to(arguments.x.dtype, memory_format=torch.contiguous_format))


def causal_conv1d_update(arguments: ConvUpdateArguments) -> Tensor:
    """See `mamba2_varlen.causal_conv1d_update`."""
    dtype = compute_dtype(arguments.x)
    rows = kept_rows(arguments.state_indices)
    x = arguments.x if rows is None else arguments.x[rows]
    state = gather(arguments.conv_state, arguments.state_indices, rows)
    window = torch.cat([state.to(dtype), x.to(dtype).unsqueeze(-1)], dim=-1)
    out = (window * arguments.weight.to(dtype)).sum(-1)
    if arguments.bias is not None:
        out += arguments.bias.to(dtype)
    if arguments.activation is not None:
        out = silu(out)
    scatter(arguments.conv_state, arguments.state_indices, rows, window[..., 1:])
    if rows is None:
        return out.to(arguments.x.dtype)
    return torch.zeros_like(arguments.x).index_copy_(0, rows, out.to(arguments.x.dtype))


def _with_history(arguments: ConvArguments, dtype: torch.dtype) -> Tensor:
    """(T + b*(W-1), D) in x's own layout: each sequence's tokens behind the W-1 inputs before it."""
    x, metadata = arguments.x, arguments.metadata
    channels, history = arguments.weight.shape[0], arguments.weight.shape[1] - 1
    total = metadata.tokens + metadata.sequences * history
    along_tokens = x.stride(0) == 1 and x.stride(1) != 1
    inputs = (
        x.new_zeros((channels, total), dtype=dtype).T if along_tokens else x.new_zeros((total, channels), dtype=dtype)
    )
    if metadata.sequences == 1:
        inputs[history:] = x
    else:
        inputs.index_copy_(0, _token_rows(arguments), x.to(dtype))
    if arguments.initial_states is not None:
        starts = metadata.cu_seqlens[:-1].long() + torch.arange(metadata.sequences, device=metadata.device) * history
        rows = starts[:, None] + torch.arange(history, device=metadata.device)
        inputs.index_copy_(0, rows.flatten(), arguments.initial_states.to(dtype).transpose(1, 2).flatten(0, 1))
    return inputs


def _token_rows(arguments: ConvArguments) -> Tensor:
    """(T) row of each token among the inputs with history."""
    metadata = arguments.metadata
    shift = torch.arange(1, metadata.sequences + 1, device=metadata.device) * (arguments.weight.shape[1] - 1)
    shift = torch.repeat_interleave(shift, metadata.seq_lengths.long(), output_size=metadata.tokens)
    return torch.arange(metadata.tokens, device=metadata.device) + shift


def _convolve(inputs: Tensor, arguments: ConvArguments, dtype: torch.dtype) -> Tensor:
    """Output of every window of W rows; the few that span two sequences are left out by the caller."""
    weight = arguments.weight.to(dtype)
    width = weight.shape[1]
    windows = inputs.shape[0] - width + 1
    out = inputs[:windows] * weight[:, 0]
    for tap in range(1, width):
        out.addcmul_(inputs[tap : tap + windows], weight[:, tap])
    if arguments.bias is not None:
        out += arguments.bias.to(dtype)
    return out if arguments.activation is None else silu(out, inplace=True)
