"""The scan as a recurrence over tokens, in float64."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import silu

from ..arguments import SsdArguments, SsuArguments, StepSize
from ..results import SsdResult


@dataclass(frozen=True)
class Operands:
    """The inputs of the recurrence in float64, with B and C repeated to one row per head."""

    x: Tensor
    dt: Tensor
    A: Tensor
    B: Tensor
    C: Tensor
    D: Tensor | None
    z: Tensor | None


def ssd_prefill(arguments: SsdArguments) -> SsdResult:
    """Run each sequence token by token; see `mamba2_varlen.ssd_prefill`."""
    operands = operands_of(arguments)
    metadata = arguments.metadata
    heads, headdim, state_size = arguments.x.shape[1], arguments.x.shape[2], arguments.B.shape[2]
    final = torch.zeros(
        (metadata.sequences, heads, headdim, state_size), dtype=torch.float64, device=arguments.x.device
    )
    if arguments.initial_states is not None:
        final.copy_(arguments.initial_states)
    after_chunk = []
    start = 0
    for sequence, length in enumerate(metadata.lengths):
        for offset in range(length):
            final[sequence], row = advance(operands, start + offset, final[sequence])
            arguments.out[start + offset] = row.to(arguments.out.dtype)
            if (offset + 1) % metadata.chunk_size == 0 or offset + 1 == length:
                after_chunk.append(final[sequence].to(arguments.state_dtype))
        start += length
    intermediate = None
    if arguments.return_intermediate_states:
        intermediate = torch.stack(after_chunk) if after_chunk else final[:0].to(arguments.state_dtype)
    return SsdResult(arguments.out, final.to(arguments.state_dtype), intermediate)


def advance(operands: Operands, row: int, state: Tensor) -> tuple[Tensor, Tensor]:
    """State (H, P, N) after one row, and that row's output (H, P)."""
    x, dt = operands.x[row], operands.dt[row]
    decay = torch.exp(operands.A * dt)
    state = state * decay[:, None, None] + (dt[:, None] * x)[:, :, None] * operands.B[row][:, None, :]
    out = (state * operands.C[row][:, None, :]).sum(-1)
    if operands.D is not None:
        out = out + operands.D * x
    if operands.z is not None:
        out = out * silu(operands.z[row])
    return state, out


def operands_of(arguments: SsdArguments | SsuArguments) -> Operands:
    """Everything in float64, dt already a step size."""
    heads_per_group = arguments.x.shape[1] // arguments.B.shape[1]
    skip = arguments.D
    return Operands(
        x=arguments.x.double(),
        dt=step_size(arguments.dt, arguments.step),
        A=arguments.A.double(),
        B=arguments.B.double().repeat_interleave(heads_per_group, dim=1),
        C=arguments.C.double().repeat_interleave(heads_per_group, dim=1),
        D=None if skip is None else skip.double().reshape(skip.shape[0], -1),
        z=None if arguments.z is None else arguments.z.double(),
    )


def step_size(dt: Tensor, step: StepSize) -> Tensor:
    """dt as a step size in float64: bias, softplus up to 20 and the identity above, clamp."""
    dt = dt.double()
    if step.bias is not None:
        dt = dt + step.bias.double()
    if step.softplus:
        dt = torch.where(dt > 20.0, dt, torch.log1p(torch.exp(dt.clamp(max=20.0))))
    return dt.clamp(*step.limit)
