"""One object per batch that every layer shares: the scan's chunks, the convolution's programs, and the torch scan's
waves.

Built once per forward pass from the sequence boundaries alone. Nothing here looks at activations.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from .waves import WaveGrid, build_waves

# Tokens one program of the Triton convolution covers. Fixed here because the program list below is cut by it. On an H200
# 64 took 1 to 3 % less time than 32 (8,192 to 65,536 tokens); more would leave too few programs for short batches.
CONV_TILE_TOKENS = 64

# Index tensors share one buffer; each begins at a multiple of so many int32 values. Triton compiles a kernel anew for
# pointers that are not aligned to 16 bytes, so a batch's lengths must not decide on the alignment.
ALIGNMENT = 32

Index = NDArray[np.int64]


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
        longest_first: (b) the sequences by falling length, so that a kernel starts the longest ones first.
        conv_sequence, conv_tile: (programs) sequence and tile index of each convolution program; every sequence has
            at least one, which also writes its final state.
        lengths: the lengths once more, on the host, so that no operator has to wait for the device.
        longest: the largest of them, 0 without sequences.
    """

    chunk_size: int
    tokens: int
    lengths: tuple[int, ...]
    longest: int
    cu_seqlens: Tensor
    seq_lengths: Tensor
    cu_chunk_seqlens: Tensor
    chunk_to_sequence: Tensor
    first_chunk_of_sequence: Tensor
    last_chunk_of_sequence: Tensor
    longest_first: Tensor
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

    The result lives on `device`, by default that of `cu_seqlens` (the CPU for Python ints). Boundaries on the host
    reach a GPU in one copy that nobody waits for; boundaries on a GPU must first be waited for and read.

    Raises:
        ValueError: chunk_size is no power of two; cu_seqlens is empty, does not start at 0, or decreases.
        TypeError: cu_seqlens is a tensor of another dtype, or holds something else than whole numbers.
    """
    _check_chunk_size(chunk_size)
    if device is None:
        device = cu_seqlens.device if isinstance(cu_seqlens, Tensor) else "cpu"
    starts = _boundaries(cu_seqlens)
    lengths = np.diff(starts)
    counts = -(-lengths // chunk_size)
    ends = np.cumsum(counts)
    sequence, ordinal = _enumerate_parts(counts)
    conv_sequence, conv_tile = _enumerate_parts(np.maximum(-(-lengths // CONV_TILE_TOKENS), 1))
    indices = {
        "cu_seqlens": starts,
        "seq_lengths": lengths,
        "cu_chunk_seqlens": np.append(starts[sequence] + ordinal * chunk_size, starts[-1]),
        "chunk_to_sequence": sequence,
        "first_chunk_of_sequence": ends - counts,
        "last_chunk_of_sequence": ends - 1,
        "longest_first": np.argsort(-lengths, kind="stable"),
        "conv_sequence": conv_sequence,
        "conv_tile": conv_tile,
    }
    return VarlenMetadata(
        chunk_size=chunk_size,
        tokens=int(starts[-1]),
        lengths=tuple(lengths.tolist()),
        longest=int(lengths.max(initial=0)),
        **_placed(indices, torch.device(device)),
    )


def _check_chunk_size(chunk_size: int) -> None:
    if isinstance(chunk_size, bool) or not isinstance(chunk_size, int):
        raise TypeError(f"chunk_size must be an int, got {type(chunk_size).__name__}")
    if chunk_size < 1 or chunk_size & (chunk_size - 1):
        raise ValueError(f"chunk_size must be a power of two, got {chunk_size}")


def _boundaries(cu_seqlens: Tensor | Sequence[int]) -> Index:
    if isinstance(cu_seqlens, Tensor):
        if cu_seqlens.dtype not in (torch.int32, torch.int64):
            raise TypeError(f"cu_seqlens must be int32 or int64, got {cu_seqlens.dtype}")
        if cu_seqlens.dim() != 1:
            raise ValueError(f"cu_seqlens must have one dimension, got shape {tuple(cu_seqlens.shape)}")
        values = cu_seqlens.cpu().numpy().astype(np.int64)
    else:
        values = np.asarray(cu_seqlens, dtype=np.int64) if len(cu_seqlens) else np.empty(0, np.int64)
        if values.ndim != 1 or not np.array_equal(values, np.asarray(cu_seqlens)):
            raise TypeError(f"cu_seqlens must hold whole numbers, got {cu_seqlens!r}")
    if not values.size:
        raise ValueError("cu_seqlens must hold at least its leading 0, got an empty sequence")
    if values[0] != 0:
        raise ValueError(f"cu_seqlens must start at 0, got {values[0]}")
    falls = np.flatnonzero(values[1:] < values[:-1])
    if falls.size:
        index = int(falls[0])
        raise ValueError(
            f"cu_seqlens must not decrease: entry {index} is {values[index]}, entry {index + 1} is {values[index + 1]}"
        )
    if values[-1] > np.iinfo(np.int32).max:
        raise ValueError(f"cu_seqlens must end below 2**31, got {values[-1]}")
    return values


def _enumerate_parts(counts: Index) -> tuple[Index, Index]:
    """For counts (b) of parts per sequence: the sequence of every part, and the part's place within it."""
    sequence = np.repeat(np.arange(counts.shape[0]), counts)
    return sequence, np.arange(sequence.shape[0]) - np.repeat(np.cumsum(counts) - counts, counts)


def _placed(indices: dict[str, Index], device: torch.device) -> dict[str, Tensor]:
    """The indices as int32 tensors on the device: parts of one buffer, so that one copy carries them all."""
    starts, total = [], 0
    for index in indices.values():
        starts.append(total)
        total += -(-index.size // ALIGNMENT) * ALIGNMENT
    buffer = torch.empty(total, dtype=torch.int32, pin_memory=device.type == "cuda")
    host = buffer.numpy()
    for start, index in zip(starts, indices.values(), strict=True):
        host[start : start + index.size] = index
    moved = buffer.to(device, non_blocking=True)
    return {
        name: moved[start : start + index.size] for start, (name, index) in zip(starts, indices.items(), strict=True)
    }
