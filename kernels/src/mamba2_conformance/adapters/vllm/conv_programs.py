"""vLLM's metadata of a convolution prefill: which sequence and which tile of it each Triton program takes.

vLLM's launch grid writes these tensors into the kernel's arguments while it counts programs. Triton's interpreter has
turned its arguments into pointers by then, so there it is given pointers: the kernel reads the same numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from mamba2_conformance.adapters.index_tensors import index
from mamba2_conformance.adapters.interpreter import pointer_in_interpreter
from mamba2_conformance.adapters.vllm.stand_in import PAD_SLOT_ID

TILE = 8
"""Tokens of a program in every commit so far; another size is computed when a grid asks for it."""

LEAST_PROGRAMS = 1024


@dataclass(frozen=True, eq=False)
class ConvMetadata:
    """What `causal_conv1d_fn` reads of vLLM's own metadata object, in all eras."""

    cu_seqlen: int
    nums_dict: "Programs"
    batch_ptr: Tensor
    token_chunk_offset_ptr: Tensor


class Programs(dict[int, dict[str, object]]):
    """Tokens of a program -> what the grid looks up. Keeps the tensors alive whose pointers it gives."""

    def __init__(self, lens: Sequence[int], device: torch.device) -> None:
        super().__init__()
        self.lens = lens
        self.device = device
        self.tensors: dict[int, tuple[Tensor, Tensor]] = {}

    def __missing__(self, tile: int) -> dict[str, object]:
        counts = [-(-length // tile) for length in self.lens]
        sequences = [sequence for sequence, count in enumerate(counts) for _ in range(count)]
        places = [place for count in counts for place in range(count)]
        self.tensors[tile] = padded(sequences, self.device), padded(places, self.device)
        self[tile] = {
            "nums": torch.tensor(counts),
            "tot": sum(counts),
            "mlist": index(sequences, torch.device("cpu")),
            "mlist_len": len(sequences),
            "offsetlist": index(places, torch.device("cpu")),
            "batch_ptr": pointer_in_interpreter(self.tensors[tile][0]),
            "token_chunk_offset_ptr": pointer_in_interpreter(self.tensors[tile][1]),
        }
        return self[tile]


def conv_metadata(lens: Sequence[int], device: torch.device) -> ConvMetadata:
    programs = Programs(lens, device)
    if programs[TILE]["tot"] == 0:  # the kernel would not start at all; its grid may not be empty
        raise ValueError("a convolution prefill needs at least one token")
    return ConvMetadata(sum(lens), programs, *programs.tensors[TILE])


def padded(values: Sequence[int], device: torch.device) -> Tensor:
    """As long as vLLM makes them; entries without a program hold its padding index."""
    full = torch.full((2 * max(LEAST_PROGRAMS, len(values)),), PAD_SLOT_ID, dtype=torch.int32, device=device)
    full[: len(values)] = index(values, device)
    return full
