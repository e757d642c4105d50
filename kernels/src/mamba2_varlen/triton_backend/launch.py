"""The one door through which kernels start, so that launches can be recorded instead of run."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor
from triton import knobs

from .tiles import Tile, tile_for

Argument = Tensor | int | float | bool | str | tl.dtype | None
Grid = tuple[int, ...]


@dataclass(frozen=True)
class Launch:
    """One kernel start: the kernel, its arguments by name (constexprs too), grid and tile."""

    name: str
    kernel: Any
    grid: Grid
    arguments: dict[str, Argument]
    tile: Tile


_RECORD: ContextVar[list[Launch] | None] = ContextVar("recorded_launches", default=None)


def launch(
    name: str, kernel: Any, grid: Callable[[dict[str, int]], Grid], tile: Tile | None = None, **arguments: Argument
) -> None:
    """Start `kernel` with the tile given, else that of `name`; `grid` computes the grid from the block sizes. Empty grids
    start nothing."""
    tile = tile or tile_for(name)
    blocks = dict(tile.blocks)
    extent = grid(blocks)
    if 0 in extent:
        return
    record = _RECORD.get()
    if record is not None:
        record.append(Launch(name, kernel, extent, {**arguments, **blocks}, tile))
        return
    with _on_device(arguments):
        kernel[extent](**arguments, **blocks, **tile.options())


@contextmanager
def recorded_launches() -> Iterator[list[Launch]]:
    """Collect launches within the block instead of running them; outputs stay uninitialised."""
    record: list[Launch] = []
    token = _RECORD.set(record)
    try:
        yield record
    finally:
        _RECORD.reset(token)


def cdiv(value: int, block: int) -> int:
    """Blocks needed to cover value."""
    return -(-value // block)


def block_of(value: int, least: int = 1) -> int:
    """The power of two that covers value, at least `least` (16 where the block enters a matrix product)."""
    return max(triton.next_power_of_2(max(value, 1)), least)


def product_dtype(x: Tensor) -> tl.dtype:
    """Operand dtype of matrix products: x's own. Triton 3.6's interpreter multiplies bfloat16 bit patterns as if they
    were integers, so on a CPU such products run in float32."""
    if x.dtype == torch.bfloat16 and knobs.runtime.interpret:
        return tl.float32
    return {torch.float32: tl.float32, torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}[x.dtype]


def refuse_float64(x: Tensor) -> None:
    """The kernels accumulate in float32, so float64 inputs are refused rather than quietly rounded."""
    if x.dtype == torch.float64:
        raise TypeError("x must be float32, float16 or bfloat16 for backend='triton', got torch.float64")


def _on_device(arguments: dict[str, Argument]) -> Any:
    tensor = next(value for value in arguments.values() if isinstance(value, Tensor))
    # Switching the device takes as long as a launch, so it is done only where there is something to switch.
    if not tensor.is_cuda or tensor.device.index == torch.cuda.current_device():
        return nullcontext()
    return torch.cuda.device(tensor.device)
