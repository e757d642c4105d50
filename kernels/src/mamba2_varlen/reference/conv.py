"""The causal convolution, sequence by sequence in float64."""

import torch
from torch import Tensor
from torch.nn.functional import silu

from ..arguments import ConvArguments, ConvUpdateArguments
from ..results import ConvResult


def causal_conv1d_prefill(arguments: ConvArguments) -> ConvResult:
    """Convolve each sequence behind its own history; see `mamba2_varlen.causal_conv1d_prefill`."""
    x = arguments.x
    channels, width = arguments.weight.shape
    final = torch.zeros((arguments.metadata.sequences, channels, width - 1), dtype=x.dtype, device=x.device)
    start = 0
    for sequence, length in enumerate(arguments.metadata.lengths):
        history = torch.zeros((channels, width - 1), dtype=torch.float64, device=x.device)
        if arguments.initial_states is not None:
            history.copy_(arguments.initial_states[sequence])
        inputs = torch.cat([history, x[start : start + length].T.double()], dim=1)
        for offset in range(length):
            window = inputs[:, offset : offset + width]
            arguments.out[start + offset] = _convolve(window, arguments).to(x.dtype)
        final[sequence] = inputs[:, length:].to(x.dtype)
        start += length
    return ConvResult(arguments.out, final)


def causal_conv1d_update(arguments: ConvUpdateArguments) -> Tensor:
    """Push one input into each row's slot; see `mamba2_varlen.causal_conv1d_update`."""
    rows = arguments.x.shape[0]
    out = torch.zeros_like(arguments.x)
    slots = range(rows) if arguments.state_indices is None else arguments.state_indices.tolist()
    for row, slot in enumerate(slots):
        if slot < 0:
            continue
        window = torch.cat([arguments.conv_state[slot].double(), arguments.x[row].double()[:, None]], dim=1)
        out[row] = _convolve(window, arguments).to(out.dtype)
        arguments.conv_state[slot] = window[:, 1:].to(arguments.conv_state.dtype)
    return out


def _convolve(window: Tensor, arguments: ConvArguments | ConvUpdateArguments) -> Tensor:
    out = (window * arguments.weight.double()).sum(1)
    if arguments.bias is not None:
        out = out + arguments.bias.double()
    return out if arguments.activation is None else silu(out)
