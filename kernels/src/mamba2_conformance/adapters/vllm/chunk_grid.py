"""The index tensors that vLLM's scans take beside their inputs, built as its engine builds them. No kernel runs here.

Before vLLM PR 24683 chunks were cut at multiples of chunk_size of the packed buffer, so that one chunk could hold
several sequences; since then no chunk spans two. A grid is cut from each sequence's first token here.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mamba2_conformance.adapters.index_tensors import index
from mamba2_conformance.problem import spans


@dataclass(frozen=True, eq=False)
class LogicalChunks:
    """Pieces that cross neither a sequence's nor a chunk's end: the chunk of each, and where in that chunk it starts."""

    indices: Tensor
    offsets: Tensor


def logical_chunks(lens: Sequence[int], chunk_size: int, device: torch.device) -> LogicalChunks:
    """For kernels whose chunks are cut by the packed buffer."""
    total = sum(lens)
    starts = sorted({*range(0, total, chunk_size), *(start for start, end in spans(lens) if end > start)})
    return LogicalChunks(
        index([start // chunk_size for start in starts], device),
        index([start % chunk_size for start in starts], device),
    )


@dataclass(frozen=True, eq=False)
class SequenceChunks:
    """Chunks cut by sequences: their ends (chunks+1) from 0, each one's sequence, each sequence's last chunk."""

    ends: Tensor
    sequences: Tensor
    last: Tensor


def sequence_chunks(lens: Sequence[int], chunk_size: int, device: torch.device) -> SequenceChunks:
    """For kernels whose chunks are cut by sequences. An empty one has no chunk: its last is the chunk before."""
    ends, sequences, last = [0], [], []
    for sequence, (start, end) in enumerate(spans(lens)):
        cuts = [*range(start + chunk_size, end, chunk_size), end] if end > start else []
        ends += cuts
        sequences += [sequence] * len(cuts)
        last.append(len(ends) - 2)
    return SequenceChunks(index(ends, device), index(sequences, device), index(last, device))
