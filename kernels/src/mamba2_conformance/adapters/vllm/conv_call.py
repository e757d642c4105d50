"""The arguments of vLLM's convolution prefill, whose states lie in the slots of a pool."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from mamba2_conformance.adapters.index_tensors import cu_seqlens, index
from mamba2_conformance.adapters.vllm.conv_programs import conv_metadata
from mamba2_conformance.problem import Convolution

LAST_BLOCK = "block_idx_last_scheduled_token"
"""The parameter by which prefix caching is told from its absence."""

BLOCK = 1024
"""Tokens of a cache block, none of which ends inside a case's sequences."""


@dataclass(frozen=True, eq=False)
class Slots:
    """Views (sequences,channels,width-1) of the slots that a batch reads its past from, and leaves its states in."""

    read: Tensor
    written: Tensor


def arguments(problem: Convolution) -> tuple[dict[str, Any], Slots]:
    """What the entry takes, in all eras; slots of a past that is kept are told as prefix caching tells them."""
    rows, past, device = len(problem.lens), problem.initial_states, problem.x.device
    pool = slot_pool(problem)
    slots = Slots(pool[1 : rows + 1], pool[-rows:])
    if past is not None:
        slots.read.copy_(past)
    found: dict[str, Any] = {
        "x": problem.x.t(), "weight": problem.weight, "bias": problem.bias, "conv_states": pool,
        "query_start_loc": cu_seqlens(problem.lens, device), "cache_indices": index(range(1, rows + 1), device),
        "has_initial_state": torch.full((rows,), past is not None, device=device),
        "activation": problem.activation, "metadata": conv_metadata(problem.lens, device),
    }  # fmt: skip
    return (found | in_blocks(rows, device) if problem.keep_past else found), slots


def in_blocks(rows: int, device: torch.device) -> dict[str, Any]:
    """Each sequence has two blocks: the first holds its past and is full, the second takes its new state."""
    return {
        "cache_indices": torch.stack(
            [index(range(1, rows + 1), device), index(range(rows + 1, 2 * rows + 1), device)], 1
        ),
        "initial_state_idx": index([0] * rows, device),
        "block_idx_first_scheduled_token": index([1] * rows, device),
        LAST_BLOCK: index([1] * rows, device),
        "num_computed_tokens": index([BLOCK] * rows, device),
        "block_size_to_align": BLOCK,
    }


def slot_pool(problem: Convolution) -> Tensor:
    """Slots behind the null block 0, one for each sequence or two, all NaN; channels next to each other in memory."""
    rows, (channels, width) = len(problem.lens), problem.weight.shape
    like = problem.x if problem.initial_states is None else problem.initial_states
    shape = (1 + rows * (2 if problem.keep_past else 1), width - 1, channels)
    return torch.full(shape, float("nan"), dtype=like.dtype, device=like.device).transpose(1, 2)
