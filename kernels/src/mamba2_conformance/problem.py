"""What a kernel is asked: the inputs of one call of each of five functions, whatever a layout calls them.

Shapes have no batch dimension: T tokens of all sequences packed, H heads of P values, N state values, G groups.
No results live here, and no random numbers.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import torch
from torch import Tensor


@dataclass(frozen=True, eq=False)
class Scan:
    """SSD prefill: x (T,H,P), dt (T,H), A (H), B and C (T,G,N), initial states (sequences,H,P,N)."""

    lens: tuple[int, ...]
    chunk_size: int
    x: Tensor
    dt: Tensor
    A: Tensor
    B: Tensor
    C: Tensor
    D: Tensor | None = None
    z: Tensor | None = None
    dt_bias: Tensor | None = None
    dt_softplus: bool = False
    dt_limit: tuple[float, float] = (0.0, float("inf"))
    initial_states: Tensor | None = None
    state_dtype: torch.dtype | None = None


@dataclass(frozen=True, eq=False)
class Convolution:
    """x (T,channels), weight (channels,width), initial states (sequences,channels,width-1), oldest first.

    keep_past: others read the initial states as well, so that the new ones must go elsewhere.
    """

    lens: tuple[int, ...]
    x: Tensor
    weight: Tensor
    bias: Tensor | None = None
    initial_states: Tensor | None = None
    activation: str | None = None
    keep_past: bool = False


@dataclass(frozen=True, eq=False)
class ConvolutionStep:
    """A token a row: x (rows,channels); `state` (slots,channels,width-1) changes in place. Index < 0: padding."""

    x: Tensor
    state: Tensor
    weight: Tensor
    bias: Tensor | None = None
    activation: str | None = None
    state_indices: Tensor | None = None


@dataclass(frozen=True, eq=False)
class StateStep:
    """One token for each row: x (rows,H,P), dt (rows,H), B and C (rows,G,N); `state` (slots,H,P,N) changes in place."""

    state: Tensor
    x: Tensor
    dt: Tensor
    A: Tensor
    B: Tensor
    C: Tensor
    D: Tensor | None = None
    z: Tensor | None = None
    dt_bias: Tensor | None = None
    dt_softplus: bool = False
    dt_limit: tuple[float, float] = (0.0, float("inf"))
    state_indices: Tensor | None = None


@dataclass(frozen=True, eq=False)
class GatedNorm:
    """RMS norm of x (rows,channels) in groups of `group_size` channels, gated by silu(z) before or after it."""

    x: Tensor
    weight: Tensor
    z: Tensor | None = None
    eps: float = 1e-5
    group_size: int | None = None
    norm_before_gate: bool = False


def spans(lens: Sequence[int]) -> list[tuple[int, int]]:
    """First token and end of each sequence in the packed batch."""
    ends = list(accumulate(lens))
    return list(zip([0, *ends[:-1]], ends, strict=True)) if ends else []


def rows_of(problem: Scan, sequences: Sequence[int]) -> Scan:
    """The same problem with only these sequences, in this order: what each of them looks like alone."""
    parts = [spans(problem.lens)[index] for index in sequences]
    return cut(problem, parts, None if problem.initial_states is None else problem.initial_states[list(sequences)])


def cut(problem: Scan, parts: Sequence[tuple[int, int]], initial_states: Tensor | None) -> Scan:
    """The problem of the tokens [start, end) of each part, packed, started from these states."""

    def packed(tensor: Tensor) -> Tensor:
        return torch.cat([tensor[start:end] for start, end in parts])

    return Scan(
        lens=tuple(end - start for start, end in parts),
        chunk_size=problem.chunk_size,
        x=packed(problem.x),
        dt=packed(problem.dt),
        A=problem.A,
        B=packed(problem.B),
        C=packed(problem.C),
        D=problem.D,
        z=None if problem.z is None else packed(problem.z),
        dt_bias=problem.dt_bias,
        dt_softplus=problem.dt_softplus,
        dt_limit=problem.dt_limit,
        initial_states=initial_states,
        state_dtype=problem.state_dtype,
    )
