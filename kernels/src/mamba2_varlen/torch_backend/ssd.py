"""The chunked scan: matrix products within short pieces, a recurrence over states between them.

Pieces come from the metadata's waves, so all sequences advance side by side and the Python loop runs over time only. Pieces of
consecutive waves are computed together in blocks that stay in cache.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import silu

from ..arguments import SsdArguments
from ..results import SsdResult
from ..waves import WaveGrid
from .pieces import Pieces, lay_out

# Rows of a piece computed at once. Row tiles skip the columns that lie after their last row, and their scores stay in cache.
ROW_TILE = 16

# Elements of x in a block of pieces; larger blocks amortise calls, smaller ones keep their scores and states in cache.
BLOCK_ELEMENTS = 1 << 18


def ssd_prefill(arguments: SsdArguments) -> SsdResult:
    """See `mamba2_varlen.ssd_prefill`."""
    grid = arguments.metadata.waves
    pieces = lay_out(arguments, grid)
    carried = _initial_states(arguments, grid, pieces.x.dtype)
    kept = None
    if arguments.return_intermediate_states:
        kept = torch.empty((pieces.count, *carried.shape[1:]), dtype=arguments.state_dtype, device=carried.device)
    y = torch.empty_like(pieces.x)
    for waves in _blocks(grid.wave_bounds, pieces.elements):
        block = pieces.narrow(waves[0], waves[-1])
        entering = _pass_states(block, carried, waves, kept)
        _scan(block, entering, y[waves[0] : waves[-1]])
    _finish(y, pieces, arguments, grid)
    final = carried if grid.rank_to_sequence is None else torch.empty_like(carried).index_copy_(0, grid.rank_to_sequence, carried)
    intermediate = None if kept is None else kept.index_select(0, grid.chunk_end)
    return SsdResult(arguments.out, final.to(arguments.state_dtype), intermediate)


def _initial_states(arguments: SsdArguments, grid: WaveGrid, dtype: torch.dtype) -> Tensor:
    """States (b, H, P, N) by rank, in a buffer of its own: the scan advances it in place."""
    sequences = arguments.metadata.sequences
    heads, headdim = arguments.x.shape[1:]
    if arguments.initial_states is None:
        return torch.zeros((sequences, heads, headdim, arguments.B.shape[2]), dtype=dtype, device=arguments.x.device)
    states = arguments.initial_states
    if grid.rank_to_sequence is not None:
        states = states.index_select(0, grid.rank_to_sequence)
    return states.to(dtype, copy=True, memory_format=torch.contiguous_format)


def _blocks(wave_bounds: tuple[int, ...], elements: int) -> Iterator[tuple[int, ...]]:
    """Runs of wave bounds whose pieces, of `elements` each, fill about BLOCK_ELEMENTS; a single wave is never cut."""
    limit = max(BLOCK_ELEMENTS // elements, 1)
    run = [0]
    for bound in wave_bounds[1:]:
        if len(run) > 1 and bound - run[0] > limit:
            yield tuple(run)
            run = [run[-1]]
        run.append(bound)
    if len(run) > 1:
        yield tuple(run)


def _pass_states(block: Pieces, carried: Tensor, waves: tuple[int, ...], kept: Tensor | None) -> Tensor:
    """Advance `carried` (b, H, P, N) over the block's waves; returns the state entering each piece (k, H, P, N)."""
    weight = torch.exp((block.decay[:, :, -1:] - block.decay).clamp_(max=0.0)).mul_(block.dt)
    weighted = block.grouped(block.x * weight.transpose(1, 2).unsqueeze(-1))
    added = torch.matmul(weighted.transpose(-1, -2), block.B).view(block.count, *carried.shape[1:])
    total = torch.exp(block.decay[:, :, -1]).unsqueeze(-1).unsqueeze(-1)
    entering = torch.empty_like(added)
    for start, end in zip(waves, waves[1:], strict=False):
        here = slice(start - waves[0], end - waves[0])
        state = carried[: end - start]
        entering[here] = state
        torch.addcmul(added[here], state, total[here], out=state)
        if kept is not None:
            kept[start:end] = state
    return entering


def _scan(block: Pieces, entering: Tensor, y: Tensor) -> None:
    """Write y (k, rows, H, P): what each row sees of its own piece, and of the state that entered the piece."""
    scores = torch.matmul(block.C, block.B.transpose(-1, -2)).tril_().unsqueeze(2)
    values = block.x.transpose(1, 2) * block.dt.unsqueeze(-1)
    states = entering.view(block.count, block.groups, -1, entering.shape[-1]).transpose(-1, -2)
    for first in range(0, block.rows, ROW_TILE):
        rows = slice(first, min(first + ROW_TILE, block.rows))
        inside = _within_piece(block, scores, values, rows)
        carried = block.ungrouped(torch.matmul(block.C[:, :, rows], states))
        decay = _carried_decay(block, rows).transpose(1, 2).unsqueeze(-1)
        torch.addcmul(inside.transpose(1, 2), carried, decay, out=y[:, rows])


def _within_piece(block: Pieces, scores: Tensor, values: Tensor, rows: slice) -> Tensor:
    """(k, H, tile, P): rows' outputs from the rows of their own piece up to themselves; scores are zero after the diagonal."""
    decay = block.decay[:, :, rows, None] - block.decay[:, :, None, : rows.stop]
    weights = decay.clamp_(max=0.0).exp_().unflatten(1, (block.groups, -1))
    weights = weights.mul_(scores[..., rows, : rows.stop]).flatten(1, 2)
    return torch.matmul(weights, values[:, :, : rows.stop])


def _carried_decay(block: Pieces, rows: slice) -> Tensor:
    """(k, H, tile): what is left at each row of the state that entered the piece, counted from the piece's start."""
    return torch.exp(block.decay[:, :, rows])


def _finish(y: Tensor, pieces: Pieces, arguments: SsdArguments, grid: WaveGrid) -> None:
    """Add the skip, gate, and bring rows back into token order in `out`."""
    dtype = y.dtype
    if arguments.D is not None:
        skip = arguments.D.to(dtype)
        y.addcmul_(pieces.x, skip if skip.dim() == 2 else skip.unsqueeze(-1))
    y = y.flatten(0, 1)
    if grid.row_of_token is not None:
        y = y.index_select(0, grid.row_of_token)
    if arguments.z is not None:
        y = y.mul_(silu(arguments.z.to(dtype)))
    arguments.out.copy_(y)
