"""What to compile ahead of time, without a GPU: every kernel with every tile, for the shapes of granite-4.0-tiny in
bf16.

Signatures are not written down here but recorded: the operators of sample_calls.py run on small CPU tensors, and
their launches are collected instead of started. Needs a process without TRITON_INTERPRET, which replaces the compiler.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .launch import Launch, recorded_launches
from .sample_calls import SAMPLE_CALLS
from .tiles import CANDIDATES, Tile, pin_tiles

# Triton assumes this alignment in bytes of pointers and divisibility of integers that have it; torch allocations do.
ALIGNMENT = 16

_TYPES = {
    torch.bfloat16: "*bf16",
    torch.float16: "*fp16",
    torch.float32: "*fp32",
    torch.int32: "*i32",
    torch.int64: "*i64",
}


@dataclass(frozen=True)
class AotSpec:
    """One compilation: `ASTSource(function, signature, constexprs, attributes)` with the given warps and stages.

    constexprs and attributes are keyed by parameter index paths, as Triton's ASTSource expects.
    """

    kernel: str
    tile: Tile
    function: Any
    signature: dict[str, str]
    constexprs: dict[tuple[int, ...], object]
    attributes: dict[tuple[int, ...], list[list[object]]]

    @property
    def num_warps(self) -> int:
        """Warps a program."""
        return self.tile.num_warps

    @property
    def num_stages(self) -> int:
        """Software pipeline stages."""
        return self.tile.num_stages


def specializations() -> list[AotSpec]:
    """Every kernel with every candidate tile, bf16 activations and float32 states."""
    specs = []
    for name, tiles in CANDIDATES.items():
        for tile in tiles:
            with pin_tiles(name, tile), recorded_launches() as launches:
                SAMPLE_CALLS[name]()
            specs += [spec_of(launch) for launch in launches if launch.name == name]
    return specs


def spec_of(launch: Launch) -> AotSpec:
    """The compilation a recorded launch would cause at run time."""
    signature: dict[str, str] = {}
    constexprs: dict[tuple[int, ...], object] = {}
    attributes: dict[tuple[int, ...], list[list[object]]] = {}
    for index, parameter in enumerate(launch.kernel.params):
        value = launch.arguments[parameter.name]
        # As at run time, None and the integer 1 are compiled in.
        if parameter.is_constexpr or value is None or (type(value) is int and value == 1):
            signature[parameter.name] = "constexpr"
            constexprs[(index,)] = value
            continue
        signature[parameter.name] = _type_of(value)
        if isinstance(value, Tensor) or (type(value) is int and value % ALIGNMENT == 0):
            attributes[(index,)] = [["tt.divisibility", ALIGNMENT]]
    return AotSpec(launch.name, launch.tile, launch.kernel, signature, constexprs, attributes)


def _type_of(value: object) -> str:
    if isinstance(value, Tensor):
        return _TYPES[value.dtype]
    if isinstance(value, float):
        return "fp32"
    if isinstance(value, int):
        return "i32" if -(2**31) <= value < 2**31 else "i64"
    raise TypeError(f"a kernel argument must be a tensor, int or float, got {type(value).__name__}")
