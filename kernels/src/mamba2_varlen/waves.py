"""The torch scan's work list: short pieces of all sequences, ordered so that a Python loop runs over time only.

A wave holds the n-th piece of every sequence that has one. Sequences are ranked longest first, so the sequences of a
wave are a prefix of those of the wave before and the carried states of a wave are a plain slice. Index arithmetic only.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

# Rows of a piece at most. Within a piece the work grows with its rows, between pieces a whole state is read and
# written; on AVX-512 cores 64 rows balance the two. Chunks are powers of two, so pieces of 64 nest in them and the
# result is unchanged.
MAX_PIECE_ROWS = 64


@dataclass(frozen=True)
class WaveGrid:
    """Pieces (c) of `rows` rows each, ordered by wave, then by rank of their sequence.

    Attributes:
        rows: rows per piece; the last piece of a sequence may use fewer.
        ordinal: (c) int64, place of a piece within its sequence; 0 is the piece an initial state enters.
        token_index: (c*rows) int64, token of each row, or None when rows lie exactly as the tokens do.
        valid: (c, rows) bool, False for rows past a sequence's end, or None when there are none.
        row_of_token: (T) int64, the inverse of token_index, or None with it.
        wave_bounds: piece where each wave starts, and the total.
        rank_to_sequence: (b) int64, or None when ranks are the sequences' own order.
        chunk_end: (nchunks) int64, the piece that ends each chunk of the metadata.
    """

    rows: int
    ordinal: Tensor
    token_index: Tensor | None
    valid: Tensor | None
    row_of_token: Tensor | None
    wave_bounds: tuple[int, ...]
    rank_to_sequence: Tensor | None
    chunk_end: Tensor


def build_waves(lengths: tuple[int, ...], chunk_size: int, device: torch.device) -> WaveGrid:
    """Work list for sequences of the given lengths in tokens; empty sequences have no piece but keep a rank."""
    rows = min(chunk_size, MAX_PIECE_ROWS, _next_power_of_two(max(lengths, default=1)))
    length = torch.tensor(lengths, dtype=torch.int64)
    counts = (length + rows - 1).div(rows, rounding_mode="floor")
    by_rank = torch.argsort(counts, descending=True, stable=True)
    rank = torch.empty_like(by_rank)
    rank[by_rank] = torch.arange(len(lengths))
    sequence = torch.repeat_interleave(torch.arange(len(lengths)), counts)
    ordinal = torch.arange(sequence.shape[0]) - (counts.cumsum(0) - counts)[sequence]
    order = torch.argsort(ordinal * max(len(lengths), 1) + rank[sequence])
    starts = (length.cumsum(0) - length)[sequence] + ordinal * rows
    used = (length[sequence] - ordinal * rows).clamp(max=rows)
    token_index, valid, row_of_token = _rows_of(starts[order], used[order], rows, sum(lengths), device)
    piece_of = torch.empty_like(order)
    piece_of[order] = torch.arange(order.shape[0])
    ends_chunk = ((ordinal + 1) * rows % chunk_size == 0) | (ordinal + 1 == counts[sequence])
    in_order = bool((by_rank == torch.arange(len(lengths))).all())
    return WaveGrid(
        rows=rows,
        ordinal=ordinal[order].to(device),
        token_index=token_index,
        valid=valid,
        row_of_token=row_of_token,
        wave_bounds=_wave_bounds(counts),
        rank_to_sequence=None if in_order else by_rank.to(device),
        chunk_end=piece_of[ends_chunk].to(device),
    )


def _rows_of(
    starts: Tensor, used: Tensor, rows: int, tokens: int, device: torch.device
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    offsets = torch.arange(rows)
    index = starts[:, None] + offsets
    valid = offsets < used[:, None]
    if bool(valid.all()) and bool((index.flatten() == torch.arange(tokens)).all()):
        return None, None, None
    row_of_token = torch.empty(tokens, dtype=torch.int64)
    row_of_token[index[valid]] = valid.flatten().nonzero().squeeze(1)
    padded = None if bool(valid.all()) else valid.to(device)
    # Rows past a sequence's end repeat its last token, so that a NaN elsewhere in the batch cannot reach it.
    token_index = starts[:, None] + torch.minimum(offsets, used[:, None] - 1)
    return token_index.flatten().to(device), padded, row_of_token.to(device)


def _wave_bounds(counts: Tensor) -> tuple[int, ...]:
    waves = int(counts.max()) if counts.numel() else 0
    widths = (counts[None, :] > torch.arange(waves)[:, None]).sum(1)
    return (0, *widths.cumsum(0).tolist())


def _next_power_of_two(value: int) -> int:
    return 1 << max(value - 1, 0).bit_length()
