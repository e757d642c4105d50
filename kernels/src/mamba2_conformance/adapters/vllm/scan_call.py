"""The arguments of an SSD prefill in each of vLLM's eras."""

from typing import Any

import torch
from torch import Tensor

from mamba2_conformance.adapters.index_tensors import cu_seqlens, token_sequences
from mamba2_conformance.adapters.vllm.chunk_grid import logical_chunks, sequence_chunks
from mamba2_conformance.adapters.vllm.era import BATCH, CHUNK_ALIGNED
from mamba2_conformance.problem import Scan

BATCHED = ("x", "dt", "B", "C", "z", "seq_idx", "out")
"""Arguments that had a batch dimension, of size 1 for packed sequences."""


def arguments(era: str, problem: Scan, out: Tensor) -> tuple[dict[str, Any], tuple[int, ...]]:
    """What the entry takes, and the chunks' ends in tokens."""
    found: dict[str, Any] = {
        "x": problem.x, "dt": problem.dt, "A": problem.A, "B": problem.B, "C": problem.C,
        "chunk_size": problem.chunk_size, "D": problem.D, "z": problem.z, "dt_bias": problem.dt_bias,
        "initial_states": problem.initial_states, "dt_softplus": problem.dt_softplus, "dt_limit": problem.dt_limit,
        "out": out,
    }  # fmt: skip
    found |= indices(
        era, problem.lens, problem.chunk_size, problem.x.device, carried=problem.initial_states is not None
    )
    if era == BATCH:
        found |= {name: found[name][None] for name in BATCHED if found[name] is not None}
        found["return_varlen_states"] = True
    ends = tuple(found["cu_chunk_seqlens"].tolist()[1:]) if era == CHUNK_ALIGNED else ()
    return found, ends


def indices(
    era: str, lens: tuple[int, ...], chunk_size: int, device: torch.device, *, carried: bool = True
) -> dict[str, Any]:
    """The index tensors; those of logical chunks only for carried states, as the engine passes them."""
    found: dict[str, Any] = {"cu_seqlens": cu_seqlens(lens, device)}
    if era == CHUNK_ALIGNED:
        chunks = sequence_chunks(lens, chunk_size, device)
        return found | {
            "cu_chunk_seqlens": chunks.ends, "last_chunk_indices": chunks.last, "seq_idx": chunks.sequences,
        }  # fmt: skip
    logical = logical_chunks(lens, chunk_size, device) if carried else None
    return found | {
        "seq_idx": token_sequences(lens, device),
        "chunk_indices": None if logical is None else logical.indices,
        "chunk_offsets": None if logical is None else logical.offsets,
    }


def last_chunks(era: str, problem: Scan) -> Tensor:
    """Each sequence's last chunk among the states after every chunk; only one era returns those."""
    if era != CHUNK_ALIGNED:
        raise ValueError(f"era {era} returns no states of chunks")
    return sequence_chunks(problem.lens, problem.chunk_size, problem.x.device).last
