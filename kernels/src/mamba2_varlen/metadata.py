"""One object per batch that every layer shares: the scan's chunks, the convolution's programs, and the torch scan's
waves.

Built once per forward pass from the sequence boundaries alone. Nothing here looks at activations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import torch
from torch import Tensor

from .waves import WaveGrid, build_waves

# Tokens one program of the Triton convolution covers. Small, so that a batch of short prompts still fills a GPU;
# fixed here because the program list below is cut by it.
CONV_TILE_TOKENS = 16


@dataclass(frozen=True)
class VarlenMetadata:
    """Where sequences, chunks and convolution tiles lie in the packed token dimension.

    Index tensors are int32 on one device. A chunk never spans two sequences. An empty sequence has no chunk: its
    first chunk is then one past its last, so the range first..last is empty.

    Attributes:
        cu_seqlens: (b+1) token where each sequence starts, and the total.
        seq_lengths: (b) tokens per sequence.
        cu_chunk_seqlens: (nchunks+1) token where each chunk starts, and the total.
        chunk_to_sequence: (nchunks) the sequence a chunk belongs to.
        first_chunk_of_sequence, last_chunk_of_sequence: (b) inclusive chunk range of each sequence.
        conv_sequence, conv_tile: (programs) sequence and tile index of each convolution program; every sequence has
            at least one, which also writes its final state.
        lengths: the lengths once more, on the host, so that no operator has to wait for the device.
    """

    chunk_size: int
    tokens: int
    lengths: tuple[int, ...]
    cu_seqlens: Tensor
    seq_lengths: Tensor
    cu_chunk_seqlens: Tensor
    chunk_to_sequence: Tensor
    first_chunk_of_sequence: Tensor
    last_chunk_of_sequence: Tensor
    conv_sequence: Tensor
    conv_tile: Tensor

    @property
    def sequences(self) -> int:
        """Number of sequences b, empty ones included."""
        return len(self.lengths)

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return self.chunk_to_sequence.shape[0]

    @property
    def device(self) -> torch.device:
        """Device of every index tensor."""
        return self.cu_seqlens.device

    @cached_property
    def waves(self) -> WaveGrid:
        """The torch scan's work list; made at the first layer that asks, then shared by the others."""
        return build_waves(self.lengths, self.chunk_size, self.device)


def build_metadata(
    cu_seqlens: Tensor | Sequence[int], *, chunk_size: int, device: torch.device | str | None = None
) -> VarlenMetadata:
    """Metadata for sequences whose boundaries are `cu_seqlens` (b+1 values, int32, int64 or Python ints).

    The result lives on `device`, by default that of `cu_seqlens` (the CPU for Python ints).

    Raises:
        ValueError: chunk_size is no power of two; cu_seqlens is empty, does not start at 0, or decreases.
        TypeError: cu_seqlens is a tensor of another dtype.
    """
    _check_chunk_size(chunk_size)
    boundaries = _boundaries(cu_seqlens)
    if device is None:
        device = cu_seqlens.device if isinstance(cu_seqlens, Tensor) else "cpu"
    starts = torch.tensor(boundaries, dtype=torch.int64)
    lengths = starts.diff()
    counts = (lengths + chunk_size - 1).div(chunk_size, rounding_mode="floor")
    ends = counts.cumsum(0)
    sequence, ordinal = _enumerate_parts(counts)
    conv_sequence, conv_tile = _enumerate_parts(
        (lengths + CONV_TILE_TOKENS - 1).div(CONV_TILE_TOKENS, rounding_mode="floor").clamp(min=1)
    )
    chunk_starts = torch.cat([starts[sequence] + ordinal * chunk_size, starts[-1:]])

    def placed(index: Tensor) -> Tensor:
        return index.to(torch.int32).to(device)

    return VarlenMetadata(
        chunk_size=chunk_size,
        tokens=boundaries[-1],
        lengths=tuple(lengths.tolist()),
        cu_seqlens=placed(starts),
        seq_lengths=placed(lengths),
        cu_chunk_seqlens=placed(chunk_starts),
        chunk_to_sequence=placed(sequence),
        first_chunk_of_sequence=placed(ends - counts),
        last_chunk_of_sequence=placed(ends - 1),
        conv_sequence=placed(conv_sequence),
        conv_tile=placed(conv_tile),
    )


def _check_chunk_size(chunk_size: int) -> None:
    if isinstance(chunk_size, bool) or not isinstance(chunk_size, int):
        raise TypeError(f"chunk_size must be an int, got {type(chunk_size).__name__}")
    if chunk_size < 1 or chunk_size & (chunk_size - 1):
        raise ValueError(f"chunk_size must be a power of two, got {chunk_size}")


def _boundaries(cu_seqlens: Tensor | Sequence[int]) -> list[int]:
    if isinstance(cu_seqlens, Tensor):
        if cu_seqlens.dtype not in (torch.int32, torch.int64):
            raise TypeError(f"cu_seqlens must be int32 or int64, got {cu_seqlens.dtype}")
        if cu_seqlens.dim() != 1:
            raise ValueError(f"cu_seqlens must have one dimension, got shape {tuple(cu_seqlens.shape)}")
        values = cu_seqlens.tolist()
    else:
        values = [int(value) for value in cu_seqlens]
    if not values:
        raise ValueError("cu_seqlens must hold at least its leading 0, got an empty sequence")
    if values[0] != 0:
        raise ValueError(f"cu_seqlens must start at 0, got {values[0]}")
    for index, (before, after) in enumerate(pairwise(values)):
        if after < before:
            raise ValueError(f"cu_seqlens must not decrease: entry {index} is {before}, entry {index + 1} is {after}")
    return values


def _enumerate_parts(counts: Tensor) -> tuple[Tensor, Tensor]:
    """For counts (b) of parts per sequence: the sequence of every part, and the part's place within it."""
    sequence = torch.repeat_interleave(torch.arange(counts.shape[0]), counts)
    ordinal = torch.arange(sequence.shape[0]) - (counts.cumsum(0) - counts)[sequence]
    return sequence, ordinal
