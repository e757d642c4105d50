"""Where the real tokens of one forward pass lie among the padding, and the metadata all layers share. No model here."""

from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import Tensor


@dataclass(frozen=True)
class BatchLayout:
    """One forward pass of (rows, columns) tokens as packed sequences of their true lengths.

    Attributes:
        lengths: real tokens of each row in this forward; 0 for a row that is all padding here.
        index: (T) flat places row * columns + column of the real tokens, or None when there is no padding.
        metadata: the kernels' own metadata for these lengths.
    """

    rows: int
    columns: int
    lengths: tuple[int, ...]
    index: Tensor | None
    metadata: Any

    def pack(self, padded: Tensor) -> Tensor:
        """(rows, columns, ...) to (T, ...) without padding."""
        flat = padded.flatten(0, 1)
        return flat if self.index is None else flat.index_select(0, self.index)

    def unpack(self, packed: Tensor) -> Tensor:
        """(T, ...) to (rows, columns, ...) with zeros in padding."""
        shape = (self.rows, self.columns, *packed.shape[1:])
        if self.index is None:
            return packed.view(shape)
        flat = packed.new_zeros((self.rows * self.columns, *packed.shape[1:]))
        return flat.index_copy_(0, self.index, packed).view(shape)


def build_layout(tokens: Tensor, mask: Tensor | None, kernels: ModuleType, chunk_size: int) -> BatchLayout:
    """The layout of a forward over `tokens` (rows, columns) or (rows, columns, hidden).

    Args:
        mask: 1 for real tokens, 0 for padding, (rows, seen + columns) as transformers passes it; in chunked prefill it
            grows with the tokens seen, and its last `columns` belong to this forward. None: no padding.
        chunk_size: the model's scan chunk, a power of two.
    """
    rows, columns = tokens.shape[:2]
    index, lengths = None, [columns] * rows
    if mask is not None and not bool((real := mask[:, -columns:].to(torch.bool)).all()):
        lengths = real.sum(1).tolist()
        index = real.flatten().nonzero().squeeze(1)
    bounds = torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0, dtype=torch.int32)
    metadata = kernels.build_metadata(bounds, chunk_size=chunk_size, device=tokens.device)
    return BatchLayout(rows, columns, tuple(lengths), index, metadata)
