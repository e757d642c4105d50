"""A pool of state slots around the rows of a batch: unlisted slots, padding, and memory before and after the pool."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mamba2_conformance.deviation import Deviation, deviation, same_bits
from mamba2_conformance.oracle import Array

SLOTS = 9
MARGIN = 2
"""Slots of memory before and after the pool, so that a slot of -1 or 9 lands where it is seen and does no harm."""

LISTED = (7, 2, -1, 5, 0)
"""Slots of five rows: out of order, one of them padding."""


def in_slots(rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """The memory, the pool as a view of it with every slot wider than it needs, and each row's slot.

    Listed slots hold `rows`; everything else is NaN, which spreads if it is read and shows if it is written.
    """
    memory = torch.full((SLOTS + 2 * MARGIN, rows.shape[1] + 1, *rows.shape[2:]), float("nan"), dtype=rows.dtype)
    memory = memory.to(rows.device)
    pool = memory[MARGIN : MARGIN + SLOTS, : rows.shape[1]]
    for row, slot in enumerate(LISTED):
        if slot >= 0:
            pool[slot] = rows[row]
    return memory, pool, torch.tensor(LISTED, dtype=torch.int32, device=rows.device)


def slot_deviations(memory: Tensor, before: Tensor, want: Array, indices: Tensor, limit: float) -> Sequence[Deviation]:
    """Listed slots against the oracle's states, all other memory bit for bit against what it was."""
    listed = [int(slot) for slot in indices if slot >= 0]
    channels = want.shape[1]
    pool = memory[MARGIN : MARGIN + SLOTS, :channels]
    written = deviation("state", pool[listed], want[listed], limit)
    rest, rest_before = memory.clone(), before.clone()
    for slot in listed:
        rest[MARGIN + slot, :channels] = 0.0
        rest_before[MARGIN + slot, :channels] = 0.0
    return [written, same_bits("memory outside the listed slots", rest, rest_before)]
