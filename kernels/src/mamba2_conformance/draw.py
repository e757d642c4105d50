"""Seeded random problems. Decays are slow (|A dt| sums to a few units a chunk), for a fast decay hides a wrong state.

The same seed gives the same numbers on every machine: they are drawn on the CPU and then moved.
"""

import zlib
from dataclasses import dataclass, field

import torch
from torch import Tensor

from mamba2_conformance.problem import Convolution, ConvolutionStep, GatedNorm, Scan, StateStep


@dataclass(frozen=True)
class ScanShape:
    """What to draw for an SSD prefill. `options` are Scan's optional tensors by name; "D_full" is D of shape (H,P)."""

    lens: tuple[int, ...]
    chunk_size: int = 32
    heads: int = 2
    head_dim: int = 16
    state_size: int = 16
    groups: int = 1
    dtype: torch.dtype = torch.float32
    state_dtype: torch.dtype | None = None
    options: frozenset[str] = frozenset()
    dt_softplus: bool = False
    dt_limit: tuple[float, float] = (0.0, float("inf"))

    def __str__(self) -> str:
        size = f"heads {self.heads} x {self.head_dim}, state {self.state_size}, groups {self.groups}"
        parts = [f"lens {' '.join(map(str, self.lens))}", f"chunk {self.chunk_size}", size, name_of(self.dtype)]
        parts += [f"state {name_of(self.state_dtype)}"] if self.state_dtype else []
        parts += sorted(self.options)
        parts += ["softplus"] if self.dt_softplus else []
        parts += [f"dt limit {self.dt_limit}"] if self.dt_limit != (0.0, float("inf")) else []
        return ", ".join(parts)


@dataclass(frozen=True)
class Draw:
    """A source of tensors on one device, seeded by a case's name."""

    name: str
    device: str
    generator: torch.Generator = field(default_factory=torch.Generator)

    def __post_init__(self) -> None:
        self.generator.manual_seed(zlib.crc32(self.name.encode()))

    def normal(self, *shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.randn(shape, generator=self.generator).to(dtype).to(self.device)

    def between(self, low: float, high: float, *shape: int) -> Tensor:
        return (low + (high - low) * torch.rand(shape, generator=self.generator)).to(self.device)

    def scan(self, shape: ScanShape) -> Scan:
        tokens, dtype, H, P = sum(shape.lens), shape.dtype, shape.heads, shape.head_dim
        softplus = shape.dt_softplus
        state_shape = (len(shape.lens), H, P, shape.state_size)
        return Scan(
            lens=shape.lens,
            chunk_size=shape.chunk_size,
            x=self.normal(tokens, H, P, dtype=dtype),
            dt=self.between(-5.0, -1.0, tokens, H) if softplus else self.between(0.01, 0.15, tokens, H),
            A=self.between(-1.0, -0.1, H),
            B=self.normal(tokens, shape.groups, shape.state_size, dtype=dtype),
            C=self.normal(tokens, shape.groups, shape.state_size, dtype=dtype),
            D=self._skip(shape),
            z=self.normal(tokens, H, P, dtype=dtype) if "z" in shape.options else None,
            dt_bias=self.between(0.0, 0.5, H) if "dt_bias" in shape.options else None,
            dt_softplus=softplus,
            dt_limit=shape.dt_limit,
            initial_states=self.normal(*state_shape) if "initial_states" in shape.options else None,
            state_dtype=shape.state_dtype,
        )

    def convolution(self, lens: tuple[int, ...], *, channels: int, width: int, initial_states: bool) -> Convolution:
        return Convolution(
            lens=lens,
            x=self.normal(sum(lens), channels),
            weight=self.normal(channels, width),
            bias=self.normal(channels),
            initial_states=self.normal(len(lens), channels, width - 1) if initial_states else None,
            activation="silu",
        )

    def convolution_step(self, rows: int, *, channels: int, width: int) -> ConvolutionStep:
        return ConvolutionStep(
            x=self.normal(rows, channels),
            state=self.normal(rows, channels, width - 1),
            weight=self.normal(channels, width),
            bias=self.normal(channels),
            activation="silu",
        )

    def state_step(self, rows: int, *, heads: int, groups: int = 1) -> StateStep:
        P = N = 16
        return StateStep(
            state=self.normal(rows, heads, P, N),
            x=self.normal(rows, heads, P),
            dt=self.between(0.05, 1.0, rows, heads),
            A=self.between(-1.0, -0.1, heads),
            B=self.normal(rows, groups, N),
            C=self.normal(rows, groups, N),
        )

    def gated_norm(self, rows: int, channels: int, *, group_size: int | None = None) -> GatedNorm:
        return GatedNorm(
            x=self.normal(rows, channels),
            weight=self.normal(channels),
            z=self.normal(rows, channels),
            group_size=group_size,
        )

    def _skip(self, shape: ScanShape) -> Tensor | None:
        if "D_full" in shape.options:
            return self.normal(shape.heads, shape.head_dim)
        return self.normal(shape.heads) if "D" in shape.options else None


def name_of(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")
