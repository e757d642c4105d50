"""Random but seeded inputs for every operator, and how close a backend must come to the reference.

Triton runs in its interpreter where there is no GPU; that must be decided before its first import.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
import torch
from torch import Tensor

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ["TRITON_INTERPRET"] = "1"
torch.set_num_threads(1)

import mamba2_varlen as m2  # noqa: E402
from mamba2_conformance import interpreter  # noqa: E402

if DEVICE == "cpu" and "triton" in m2.available_backends():
    interpreter.quicken()

# Largest error allowed, relative to the largest value: float32 sums of a few hundred terms; 16-bit products and
# outputs.
TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-5, torch.bfloat16: 2e-2, torch.float16: 3e-3}


def pytest_configure(config: pytest.Config) -> None:
    """Triton 3.6's interpreter turns one-element arrays into loop bounds in a way numpy 2.2 only warns about."""
    warning = r"ignore:Conversion of an array with ndim > 0:DeprecationWarning:triton\.runtime\.interpreter"
    config.addinivalue_line("filterwarnings", warning)


@dataclass(frozen=True)
class ScanCase:
    """Inputs of `ssd_prefill`: positional tensors, options, and the sequence lengths."""

    lengths: tuple[int, ...]
    tensors: tuple[Tensor, ...]
    options: dict[str, Any] = field(default_factory=dict)

    def run(self, backend: str, *, chunk_size: int = 32, **changes: Any) -> m2.SsdResult:
        """Run with outputs poisoned by NaN, so that an unwritten element cannot pass."""
        metadata = m2.build_metadata(boundaries(self.lengths), chunk_size=chunk_size, device=DEVICE)
        out = torch.full_like(self.tensors[0], torch.nan)
        return m2.ssd_prefill(*self.tensors, metadata=metadata, out=out, backend=backend, **{**self.options, **changes})


def boundaries(lengths: tuple[int, ...]) -> list[int]:
    """cu_seqlens of sequences of the given lengths."""
    return [sum(lengths[:count]) for count in range(len(lengths) + 1)]


@pytest.fixture(params=["torch", "triton"])
def backend(request: pytest.FixtureRequest) -> str:
    """Each backend that is held against the reference."""
    return str(request.param)


@pytest.fixture
def random_tensor() -> Callable[..., Tensor]:
    """Normal values of a shape and dtype, the same in every run."""
    generator = torch.Generator().manual_seed(0)

    def make(*shape: int, dtype: torch.dtype = torch.float32) -> Tensor:
        return torch.randn(shape, generator=generator).to(DEVICE, dtype)

    return make


@pytest.fixture
def scan_case(random_tensor: Callable[..., Tensor]) -> Callable[..., ScanCase]:
    """Scan inputs for sequence lengths; slow decays, so that a carried state matters to the end."""

    def make(
        lengths: tuple[int, ...],
        *,
        sizes: tuple[int, int, int, int] = (4, 8, 2, 16),
        dtype: torch.dtype = torch.float32,
        initial: bool = True,
    ) -> ScanCase:
        heads, headdim, groups, state = sizes
        tokens = sum(lengths)
        x = random_tensor(tokens, heads, headdim, dtype=dtype)
        dt = (random_tensor(tokens, heads).abs() * 0.2 + 0.01).to(dtype)
        A = -random_tensor(heads).abs() * 0.1 - 0.01
        B, C = random_tensor(2, tokens, groups, state, dtype=dtype)
        options = {"initial_states": random_tensor(len(lengths), heads, headdim, state)} if initial else {}
        return ScanCase(lengths, (x, dt, A, B, C), options)

    return make


@pytest.fixture
def assert_close() -> Callable[..., None]:
    """Compare a result with the reference's, relative to its largest value; NaN never passes."""

    def check(actual: Tensor, expected: Tensor, dtype: torch.dtype = torch.float32) -> None:
        assert actual.shape == expected.shape
        assert actual.dtype == expected.dtype
        if expected.numel():
            error = (actual.double() - expected.double()).abs().max().item()
            scale = max(expected.double().abs().max().item(), 1.0)
            assert error <= TOLERANCE[dtype] * scale, f"error {error:.2e} of scale {scale:.2e}"

    return check
