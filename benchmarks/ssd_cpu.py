"""SSD prefill on the CPU: the torch backend against transformers' own scan, side by side in one process.

Equality comes first; unequal results print no figure. Repeats alternate, so that other load on the machine meets
both, and the median of each is compared. Run in the eval environment:
`python benchmarks/ssd_cpu.py [--json] [--repeats N]`.

Wants an idle machine. While another process holds a core, transformers' threads, and ours of a small scan, spin at
barriers for whole time slices; OMP_NUM_THREADS=1 or OMP_WAIT_POLICY=passive then give steadier figures.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

import mamba2_varlen
import torch
from torch import Tensor
from transformers.models.granitemoehybrid.modeling_granitemoehybrid import mamba2_chunk_scan

TOKENS = 4096
# Both compute in float32; sums of 4,096 terms in another order differ by a few ulps of the largest output.
TOLERANCE = 2e-5


@dataclass(frozen=True)
class Shape:
    """One measured shape, and how many times faster than transformers the project asks for."""

    heads: int
    headdim: int
    state: int
    chunk: int
    wanted: float


@dataclass(frozen=True)
class Measurement:
    """Medians in milliseconds, and the largest difference relative to the largest output."""

    shape: Shape
    torch_ms: float
    transformers_ms: float
    ratio: float
    relative_difference: float


SHAPES = (Shape(8, 64, 64, 64, 2.3), Shape(48, 64, 128, 256, 15.0))


def main() -> None:
    """Measure every shape and print a table, or JSON lines with --json."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a shape instead of a table")
    parser.add_argument("--repeats", type=int, default=7, help="timed runs of each side")
    options = parser.parse_args()
    for shape in SHAPES:
        measurement = measure(shape, options.repeats)
        print(json.dumps(asdict(measurement)) if options.json else _line(measurement))


def measure(shape: Shape, repeats: int) -> Measurement:
    """Compare one shape; raises SystemExit if the two sides disagree."""
    ours, theirs = _sides(shape)
    difference = _relative_difference(ours(), theirs())
    if not difference <= TOLERANCE:
        raise SystemExit(f"{shape}: results differ by {difference:.1e} of the largest output, allowed {TOLERANCE:.0e}")
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(repeats):
        for side, taken in zip((ours, theirs), times, strict=True):
            started = time.perf_counter()
            side()
            taken.append((time.perf_counter() - started) * 1e3)
    fast, slow = (statistics.median(taken) for taken in times)
    return Measurement(shape, fast, slow, slow / fast, difference)


def _sides(shape: Shape) -> tuple[Callable[[], tuple[Tensor, Tensor]], Callable[[], tuple[Tensor, Tensor]]]:
    torch.manual_seed(0)
    x = torch.randn(TOKENS, shape.heads, shape.headdim)
    dt = torch.randn(TOKENS, shape.heads)
    B, C = torch.randn(2, TOKENS, 1, shape.state)
    A, D, dt_bias = -torch.rand(shape.heads) - 0.5, torch.randn(shape.heads), torch.randn(shape.heads) - 3.0
    state = torch.randn(1, shape.heads, shape.headdim, shape.state)
    options = {"D": D, "dt_bias": dt_bias, "dt_softplus": True, "initial_states": state}

    def ours() -> tuple[Tensor, Tensor]:
        metadata = mamba2_varlen.build_metadata([0, TOKENS], chunk_size=shape.chunk)
        result = mamba2_varlen.ssd_prefill(x, dt, A, B, C, metadata=metadata, backend="torch", **options)
        return result.out, result.final_states

    def theirs() -> tuple[Tensor, Tensor]:
        batched = (x[None], dt[None], A, B[None], C[None], shape.chunk)
        out, final = mamba2_chunk_scan(*batched, return_final_states=True, **options)
        return out[0], final

    return ours, theirs


def _relative_difference(ours: tuple[Tensor, Tensor], theirs: tuple[Tensor, Tensor]) -> float:
    return max(float((a - b).abs().max() / b.abs().max()) for a, b in zip(ours, theirs, strict=True))


def _line(m: Measurement) -> str:
    s = m.shape
    return (
        f"{s.heads} x {s.headdim}, d_state {s.state}, chunk {s.chunk}: torch backend {m.torch_ms:.1f} ms, "
        f"transformers {m.transformers_ms:.1f} ms, {m.ratio:.1f} times faster (wanted {s.wanted}), "
        f"largest difference {m.relative_difference:.0e}"
    )


if __name__ == "__main__":
    with torch.inference_mode():
        main()
