"""The decode step for all rows at once."""

import torch
from torch import Tensor
from torch.nn.functional import silu

from ..arguments import SsuArguments
from .slots import gather, kept_rows, scatter
from .step import compute_dtype, step_size


def selective_state_update(arguments: SsuArguments) -> Tensor:
    """See `mamba2_varlen.selective_state_update`."""
    rows = kept_rows(arguments.state_indices)
    dtype = compute_dtype(arguments.x)
    state = gather(arguments.state, arguments.state_indices, rows).to(dtype)

    def active(tensor: Tensor) -> Tensor:
        return (tensor if rows is None else tensor[rows]).to(dtype)

    x, dt = active(arguments.x), step_size(arguments.dt if rows is None else arguments.dt[rows], arguments.step, dtype)
    state = _advance(state, x * dt.unsqueeze(-1), torch.exp(dt * arguments.A.to(dtype)), active(arguments.B))
    out = _read(state, active(arguments.C))
    scatter(arguments.state, arguments.state_indices, rows, state)
    if arguments.D is not None:
        skip = arguments.D.to(dtype)
        out = out.addcmul_(x, skip if skip.dim() == 2 else skip.unsqueeze(-1))
    if arguments.z is not None:
        out = out.mul_(silu(active(arguments.z)))
    if rows is None:
        return arguments.out.copy_(out)
    arguments.out.zero_()
    arguments.out[rows] = out.to(arguments.out.dtype)
    return arguments.out


def _advance(state: Tensor, values: Tensor, decay: Tensor, B: Tensor) -> Tensor:
    """state (r, H, P, N) * decay (r, H) + values (r, H, P) times B (r, G, N); in place, `state` is a copy or the
    pool."""
    groups = B.shape[1]
    state.mul_(decay.unsqueeze(-1).unsqueeze(-1))
    grouped, spread = state.unflatten(1, (groups, -1)), values.unflatten(1, (groups, -1)).unsqueeze(-1)
    grouped.addcmul_(spread, B[:, :, None, None, :])
    return state


def _read(state: Tensor, C: Tensor) -> Tensor:
    """(r, H, P): each head's state times its group's C (r, G, N)."""
    rows, heads, headdim, size = state.shape
    by_group = state.reshape(rows * C.shape[1], heads // C.shape[1] * headdim, size)  # no -1: there may be no row
    return torch.bmm(by_group, C.reshape(-1, size, 1)).view(rows, heads, headdim)
