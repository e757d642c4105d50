"""The chunked scan: matrix products within short pieces, a recurrence over states between them.

Pieces come from the metadata's waves, so that sequences advance side by side, as many at once as stay in cache, and the
Python loop runs over time. Let d_i be the decay from a piece's start through row i, and d its last. Then

    y_i = e^(d_i) C_i S + sum over j <= i of (C_i . B_j) e^(d_i - d_j) dt_j x_j
        = e^(d_i - d) (C_i (e^d S) + sum over j <= i of (C_i . B_j) (e^(d - d_j) dt_j x_j))

where S is the state that enters; e^d S and e^(d - d_j) dt_j x_j are also what the state that leaves is made of. C and the
scores C . B are a group's, so one product serves all its heads. Heads for which e^-d would be too large: `steep.py`.
"""

from collections.abc import Iterator
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import silu

from ..arguments import SsdArguments
from ..results import SsdResult
from ..waves import WaveGrid
from .halves import scan_in_halves
from .pieces import Pieces, lay_out
from .scratch import Scratch
from .steep import steep_heads

# Sequences advance side by side while their states and rows have no more elements than this: 2 MB in float32, what a
# core's own cache holds.
STRIP_ELEMENTS = 1 << 18


def ssd_prefill(arguments: SsdArguments) -> SsdResult:
    """See `mamba2_varlen.ssd_prefill`."""
    return scan_in_halves(_prefill, arguments)


def _prefill(arguments: SsdArguments) -> SsdResult:
    grid = arguments.metadata.waves
    groups = lay_out(arguments, grid)
    states = _initial_states(arguments, grid, groups[0].x.dtype)
    kept = None
    if arguments.return_intermediate_states:
        kept = torch.empty((grid.wave_bounds[-1], *states.shape[1:]), dtype=arguments.state_dtype, device=states.device)
    y = _output_rows(arguments, groups[0], grid)
    scratch = Scratch(states.dtype, states.device)
    first = 0
    for pieces in groups:
        heads = slice(first, first + pieces.heads)
        for ranks in _strips(states.shape[0], (pieces.state_size + pieces.rows) * pieces.width):
            own = None if kept is None else kept[:, heads]
            _scan(pieces, grid.wave_bounds, ranks, states[ranks, heads], y[:, :, heads], own, scratch)
        first = heads.stop
    _finish(y, arguments, grid)
    if grid.rank_to_sequence is not None:
        states = torch.empty_like(states).index_copy_(0, grid.rank_to_sequence, states)
    intermediate = None if kept is None else kept.index_select(0, grid.chunk_end)
    return SsdResult(arguments.out, states.to(arguments.state_dtype), intermediate)


def _output_rows(arguments: SsdArguments, pieces: Pieces, grid: WaveGrid) -> Tensor:
    """Where rows (c, rows, H, P) are computed: `out` itself if rows lie there as tokens do, else a buffer."""
    out, dtype = arguments.out, pieces.x.dtype
    if grid.token_index is None and out.dtype == dtype:
        return out.unflatten(0, (-1, grid.rows))
    return torch.empty((grid.wave_bounds[-1], grid.rows, *out.shape[1:]), dtype=dtype, device=out.device)


def _initial_states(arguments: SsdArguments, grid: WaveGrid, dtype: torch.dtype) -> Tensor:
    """States (b, H, P, N) by rank, in a buffer of its own: the scan puts final states in their place."""
    sequences = arguments.metadata.sequences
    heads, headdim = arguments.x.shape[1:]
    if arguments.initial_states is None:
        return torch.zeros((sequences, heads, headdim, arguments.B.shape[2]), dtype=dtype, device=arguments.x.device)
    states = arguments.initial_states
    if grid.rank_to_sequence is not None:
        states = states.index_select(0, grid.rank_to_sequence)
    return states.to(dtype, copy=True, memory_format=torch.contiguous_format)


def _strips(sequences: int, elements: int) -> Iterator[slice]:
    """Runs of ranks that advance side by side, of `elements` each."""
    height = max(STRIP_ELEMENTS // elements, 1)
    for first in range(0, sequences, height):
        yield slice(first, min(first + height, sequences))


def _scan(
    pieces: Pieces, wave_bounds: tuple[int, ...], ranks: slice, states: Tensor, y: Tensor, kept: Tensor | None,
    scratch: Scratch,
) -> None:  # fmt: skip
    """Bring the sequences of `ranks` from their first piece to their last.

    states (b, H, P, N) enter and become final; y (c, rows, H, P) and kept (c, H, P, N), the state that leaves each piece,
    are written where these sequences' pieces lie.
    """
    size, by_head = pieces.state_size, (pieces.heads, -1)
    # A state above the rows of its sequence's current piece, so that one product reads both.
    stack = scratch.view("stack", states.shape[0], size + pieces.rows, pieces.width)
    carried = stack[:, :size].unflatten(2, by_head)
    carried.copy_(states.permute(0, 3, 1, 2))
    for start, end in pairwise(wave_bounds):
        first, live = start + ranks.start, min(end - start, ranks.stop) - ranks.start
        if live <= 0:
            break
        _scan_wave(pieces.narrow(first, live), stack[:live], y[first : first + live], scratch)
        if kept is not None:
            kept[first : first + live] = carried[:live].permute(0, 2, 3, 1)
    states.copy_(carried.permute(0, 2, 3, 1))


def _scan_wave(wave: Pieces, stack: Tensor, y: Tensor, scratch: Scratch) -> None:
    """One piece of each of k sequences: their states in stack (k, N + rows, H*P) advance, y (k, rows, H, P) is written."""
    by_head = (wave.heads, -1)
    states, rows = stack[:, : wave.state_size], stack[:, wave.state_size :]
    steep = steep_heads(wave, states)
    states.unflatten(2, by_head).mul_(wave.total)
    torch.mul(wave.x, wave.leaving, out=rows.unflatten(2, by_head))
    if steep is None or steep.heads is not None:
        torch.bmm(wave.seen, stack, out=y.flatten(2))
        y.mul_(wave.growth)
    if steep is not None:
        steep.write(y, scratch)
    if wave.skip is not None:
        y.addcmul_(wave.x, wave.skip)
    states.baddbmm_(wave.B.transpose(1, 2), rows)


def _finish(y: Tensor, arguments: SsdArguments, grid: WaveGrid) -> None:
    """Bring rows back into token order in `out`, gated by z."""
    y = y.flatten(0, 1)
    if grid.row_of_token is not None:
        y = y.index_select(0, grid.row_of_token)
    if arguments.z is not None:
        y = y.mul_(silu(arguments.z.to(y.dtype)))
    if y.data_ptr() != arguments.out.data_ptr():
        arguments.out.copy_(y)
