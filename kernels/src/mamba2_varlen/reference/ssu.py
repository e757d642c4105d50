"""The decode step: one row of the recurrence, in float64."""

import torch
from torch import Tensor

from ..arguments import SsuArguments
from .ssd import advance, operands_of


def selective_state_update(arguments: SsuArguments) -> Tensor:
    """Advance each row's slot by one token; see `mamba2_varlen.selective_state_update`."""
    operands = operands_of(arguments)
    rows = arguments.x.shape[0]
    slots = range(rows) if arguments.state_indices is None else arguments.state_indices.tolist()
    for row, slot in enumerate(slots):
        if slot < 0:
            arguments.out[row] = 0
            continue
        state, out = advance(operands, row, arguments.state[slot].to(torch.float64))
        arguments.state[slot] = state.to(arguments.state.dtype)
        arguments.out[row] = out.to(arguments.out.dtype)
    return arguments.out
