"""The chunked scan: matrix products within short pieces, a recurrence over states between them.

Pieces come from the metadata's waves, so all sequences advance side by side and the Python loop runs over time only.
Pieces of consecutive waves are computed together in blocks that stay in cache.
"""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn.functional import silu

from ..arguments import SsdArguments
from ..results import SsdResult
from ..waves import WaveGrid
from .halves import scan_in_halves
from .pieces import Pieces, lay_out
from .scratch import Scratch

# Rows of a piece computed at once. Row tiles skip the columns that lie after their last row, and their scores stay in
# cache.
ROW_TILE = 16

# A block of pieces holds about so many elements of x, and at least so many pieces: larger blocks amortise the cost of
# a call, smaller ones keep scores and states in a cache of a few MB.
BLOCK_ELEMENTS = 1 << 18
MIN_BLOCK_PIECES = 4


def ssd_prefill(arguments: SsdArguments) -> SsdResult:
    """See `mamba2_varlen.ssd_prefill`."""
    return scan_in_halves(_prefill, arguments)


def _prefill(arguments: SsdArguments) -> SsdResult:
    grid = arguments.metadata.waves
    pieces = lay_out(arguments, grid)
    carried = _initial_states(arguments, grid, pieces.x.dtype)
    kept = None
    if arguments.return_intermediate_states:
        kept = torch.empty((pieces.count, *carried.shape[1:]), dtype=arguments.state_dtype, device=carried.device)
    y = _output_rows(arguments, pieces, grid)
    scratch = Scratch(pieces.x.dtype, pieces.x.device)
    for waves in _blocks(grid.wave_bounds, pieces.elements):
        block = pieces.narrow(waves[0], waves[-1])
        entering = _pass_states(block, carried, scratch, waves, kept)
        _scan(block, entering, y[waves[0] : waves[-1]], scratch)
    _finish(y, arguments, grid)
    final = carried
    if grid.rank_to_sequence is not None:
        final = torch.empty_like(carried).index_copy_(0, grid.rank_to_sequence, carried)
    intermediate = None if kept is None else kept.index_select(0, grid.chunk_end)
    return SsdResult(arguments.out, final.to(arguments.state_dtype), intermediate)


def _output_rows(arguments: SsdArguments, pieces: Pieces, grid: WaveGrid) -> Tensor:
    """Where rows (c, rows, H, P) are computed: `out` itself if rows lie there as tokens do, else a buffer."""
    out = arguments.out
    if grid.token_index is None and out.dtype == pieces.x.dtype:
        return out.unflatten(0, (-1, grid.rows))
    return torch.empty(pieces.x.shape, dtype=pieces.x.dtype, device=out.device)


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
    limit = max(BLOCK_ELEMENTS // elements, MIN_BLOCK_PIECES)
    run = [0]
    for bound in wave_bounds[1:]:
        if len(run) > 1 and bound - run[0] > limit:
            yield tuple(run)
            run = [run[-1]]
        run.append(bound)
    if len(run) > 1:
        yield tuple(run)


def _pass_states(
    block: Pieces, carried: Tensor, scratch: Scratch, waves: tuple[int, ...], kept: Tensor | None
) -> Tensor:
    """Advance `carried` (b, H, P, N) over the block's waves; returns the state entering each piece (k, H, P, N)."""
    weight = torch.exp((block.decay[:, :, -1:] - block.decay).clamp_(max=0.0)).mul_(block.dt)
    weighted = torch.mul(block.x, weight.transpose(1, 2).unsqueeze(-1), out=scratch.view("rows", *block.x.shape))
    added = block.grouped(weighted).transpose(-1, -2)
    total = torch.exp(block.decay[:, :, -1]).unsqueeze(-1).unsqueeze(-1)
    entering = scratch.view("entering", block.count, *carried.shape[1:])
    bounds = [bound - waves[0] for bound in waves]
    entering[: bounds[1]] = carried[: bounds[1]]
    for start, end, after in zip(bounds[:-1], bounds[1:], [*bounds[2:], bounds[-1]], strict=True):
        # Sequences that go on hand their state to the next wave of the block; the others' comes to rest in `carried`.
        going, width = after - end, end - start
        parts = ((entering[end:after], slice(start, start + going)), (carried[going:width], slice(start + going, end)))
        for target, pieces in parts:
            if target.shape[0] == 0:
                continue
            torch.mul(entering[pieces], total[pieces], out=target)
            per_group = target.view(-1, added.shape[2], target.shape[-1])
            per_group.baddbmm_(added[pieces].flatten(0, 1), block.B[pieces].flatten(0, 1))
            if kept is not None:
                kept[waves[0] :][pieces] = target
    return entering


def _scan(block: Pieces, entering: Tensor, y: Tensor, scratch: Scratch) -> None:
    """Write y (k, rows, H, P): what each row sees of its own piece, and of the state that entered the piece."""
    scores = torch.matmul(block.C, block.B.transpose(-1, -2)).tril_().unsqueeze(2)
    states = entering.view(block.count, block.groups, -1, entering.shape[-1]).transpose(-1, -2)
    buffer = scratch.view("rows", block.count, block.groups, block.rows, states.shape[-1])
    undecayed = block.ungrouped(torch.matmul(block.C, states, out=buffer))
    for first in range(0, block.rows, ROW_TILE):
        rows = slice(first, min(first + ROW_TILE, block.rows))
        inside = _within_piece(block, scores, rows, scratch).transpose(1, 2)
        decay = _carried_decay(block, rows).transpose(1, 2).unsqueeze(-1)
        # Not addcmul: it has no vector path for a factor that all of P shares, and took half of the scan's time.
        torch.add(inside, undecayed[:, rows].mul_(decay), out=y[:, rows])
    # One D a head rides on the weights' diagonal; one D a channel cannot.
    if block.skip is not None and block.skip.shape[1] > 1:
        y.addcmul_(block.x, block.skip)


def _within_piece(block: Pieces, scores: Tensor, rows: slice, scratch: Scratch) -> Tensor:
    """(k, H, tile, P): rows' outputs from the rows of their own piece up to themselves, and from one D a head.

    Scores are zero after the diagonal, so a weight there is zero too.
    """
    decay = block.decay[:, :, rows, None] - block.decay[:, :, None, : rows.stop]
    weights = decay.clamp_(max=0.0).exp_().unflatten(1, (block.groups, -1))
    weights = weights.mul_(scores[..., rows, : rows.stop]).flatten(1, 2)
    weights.mul_(block.dt[:, :, None, : rows.stop])
    if block.skip is not None and block.skip.shape[1] == 1:
        weights.diagonal(rows.start, dim1=2, dim2=3).add_(block.skip)
    inside = scratch.view("inside", *weights.shape[:3], block.x.shape[3])
    for piece in range(block.count):
        # Piece by piece, since only then can x stay where it lies: heads and rows of one piece are plain strides.
        torch.bmm(weights[piece], block.x[piece, : rows.stop].transpose(0, 1), out=inside[piece])
    return inside


def _carried_decay(block: Pieces, rows: slice) -> Tensor:
    """(k, H, tile): what is left at each row of the state that entered the piece, counted from the piece's start."""
    return torch.exp(block.decay[:, :, rows])


def _finish(y: Tensor, arguments: SsdArguments, grid: WaveGrid) -> None:
    """Bring rows back into token order in `out`, gated by z."""
    y = y.flatten(0, 1)
    if grid.row_of_token is not None:
        y = y.index_select(0, grid.row_of_token)
    if arguments.z is not None:
        y = y.mul_(silu(arguments.z.to(y.dtype)))
    if y.data_ptr() != arguments.out.data_ptr():
        arguments.out.copy_(y)
