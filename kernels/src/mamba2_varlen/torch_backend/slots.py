"""State pools by slot: which rows of a decode batch are real, and their slots' contents in and out."""

import torch
from torch import Tensor


def kept_rows(indices: Tensor | None) -> Tensor | None:
    """Rows (r) int64 that are no padding, or None when all are real."""
    if indices is None:
        return None
    real = indices >= 0
    return None if bool(real.all()) else real.nonzero().squeeze(1)


def gather(pool: Tensor, indices: Tensor | None, rows: Tensor | None) -> Tensor:
    """The slots of the real rows: the pool itself without indices, a copy otherwise."""
    return pool if indices is None else pool.index_select(0, _slots(indices, rows))


def scatter(pool: Tensor, indices: Tensor | None, rows: Tensor | None, values: Tensor) -> None:
    """Write the real rows' values back into their slots, unless they were advanced in the pool itself."""
    if indices is not None:
        pool.index_copy_(0, _slots(indices, rows), values.to(pool.dtype))
    elif values is not pool:
        pool.copy_(values)


def _slots(indices: Tensor, rows: Tensor | None) -> Tensor:
    return (indices if rows is None else indices[rows]).to(torch.int64)
