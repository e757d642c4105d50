"""Buffers of one scan, reused from block to block: fresh ones would cost more in page faults than the arithmetic on
them."""

from dataclasses import dataclass, field

import torch
from torch import Tensor


@dataclass(frozen=True)
class Scratch:
    """Named flat buffers that grow to the largest request and are handed out as contiguous views."""

    dtype: torch.dtype
    device: torch.device
    buffers: dict[str, Tensor] = field(default_factory=dict)

    def view(self, name: str, *shape: int) -> Tensor:
        """The buffer `name` as an uninitialised tensor of `shape`; the previous view of that name is void."""
        size = 1
        for extent in shape:
            size *= extent
        buffer = self.buffers.get(name)
        if buffer is None or buffer.numel() < size:
            buffer = torch.empty(size, dtype=self.dtype, device=self.device)
            self.buffers[name] = buffer
        return buffer[:size].view(shape)
