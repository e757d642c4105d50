"""Memory that tells on its reader: while it is in force, `torch.empty` and its kin give NaN instead of what lay there.

A kernel that reads what it never wrote, or never writes what it returns, then shows NaN instead of passing by luck.
Integers are left alone: a poisoned index would crash the process instead of failing one case.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

import torch
from torch import Tensor

Maker = Callable[..., Tensor]


@contextmanager
def poisoned_memory() -> Iterator[None]:
    """New floating-point tensors without a value are full of NaN inside this block."""
    with ExitStack() as stack:
        for name in ("empty", "empty_like", "empty_strided"):
            stack.enter_context(patch.object(torch, name, poisoning(getattr(torch, name))))
        for name in ("new_empty", "new_empty_strided"):
            stack.enter_context(patch.object(Tensor, name, poisoning(getattr(Tensor, name))))
        yield


def poisoning(maker: Maker) -> Maker:
    def make(*arguments: object, **options: object) -> Tensor:
        tensor = maker(*arguments, **options)
        return tensor.fill_(float("nan")) if tensor.is_floating_point() else tensor

    return make


def nan_like(tensor: Tensor) -> Tensor:
    """An output buffer in which every value that is not written shows."""
    return torch.full_like(tensor, float("nan"))
