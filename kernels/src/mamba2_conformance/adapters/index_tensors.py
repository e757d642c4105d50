"""int32 tensors that tell packed sequences apart, as all layouts take them."""

from collections.abc import Sequence

import torch
from torch import Tensor

from mamba2_conformance.problem import spans


def cu_seqlens(lens: Sequence[int], device: torch.device) -> Tensor:
    """(sequences+1): each sequence's first token, and the end."""
    return index([0, *(end for _, end in spans(lens))], device)


def token_sequences(lens: Sequence[int], device: torch.device) -> Tensor:
    """(T): the sequence of each token."""
    return index([sequence for sequence, count in enumerate(lens) for _ in range(count)], device)


def index(values: Sequence[int], device: torch.device) -> Tensor:
    return torch.tensor(values, dtype=torch.int32, device=device)
