"""Tile sizes of every kernel: the one used first, the others a checker should sweep, and a way to pin one.

No kernel is autotuned: a choice by timing would change results' last bits between processes, and hide bugs that only
show with tiles smaller than a chunk.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType


@dataclass(frozen=True)
class Tile:
    """Block sizes by the kernel's own constexpr names, with warps and software pipeline stages.

    max_registers: a thread's registers at most, so that more programs fit on a multiprocessor; None for no cap.
    """

    blocks: tuple[tuple[str, int], ...]
    num_warps: int = 4
    num_stages: int = 2
    max_registers: int | None = None

    def block(self, name: str) -> int:
        """The size of one block by its name. Raises KeyError for a name the kernel has not."""
        return dict(self.blocks)[name]

    def __str__(self) -> str:
        sizes = ",".join(f"{name}={size}" for name, size in self.blocks)
        cap = f",registers={self.max_registers}" if self.max_registers else ""
        return f"{sizes},warps={self.num_warps},stages={self.num_stages}{cap}"

    def options(self) -> dict[str, int]:
        """Triton's compile options."""
        capped = {} if self.max_registers is None else {"maxnreg": self.max_registers}
        return {"num_warps": self.num_warps, "num_stages": self.num_stages, **capped}


def _tiles(
    names: str, *rows: tuple[tuple[int, ...], int, int] | tuple[tuple[int, ...], int, int, int]
) -> tuple[Tile, ...]:
    return tuple(Tile(tuple(zip(names.split(), sizes, strict=True)), *options) for sizes, *options in rows)


# First entry: what runs unless pinned or chosen by size below. float32 products run without tensor cores and need many
# registers, so no tile holds more than 64 x 128 accumulators.
CANDIDATES = MappingProxyType(
    {
        "ssd_walk": _tiles(
            "BLOCK_Q BLOCK_P", ((32, 64), 4, 2), ((32, 64), 4, 3, 168), ((64, 64), 4, 1), ((16, 16), 4, 1)
        ),
        # SEGMENT and PIECE are tokens, and how a pinned tile cuts: short, so that a check's lengths are cut. Unpinned,
        # walk_plan.py reckons them for the batch.
        "ssd_piece": _tiles(
            "SEGMENT PIECE BLOCK_Q BLOCK_P",
            ((128, 64, 64, 64), 4, 2),
            ((256, 128, 32, 64), 4, 3),
            ((64, 32, 32, 32), 4, 1),
            ((64, 64, 16, 16), 4, 1),
        ),
        "ssd_cumsum": _tiles("BLOCK_H", ((4,), 4, 1), ((1,), 2, 1), ((8,), 4, 1)),
        "ssd_chunk_state": _tiles(
            "BLOCK_P BLOCK_N BLOCK_K",
            ((64, 64, 32), 4, 3),
            ((32, 64, 32), 4, 2),
            ((64, 128, 32), 8, 2),
            ((32, 32, 16), 2, 1),
        ),
        "ssd_state_passing": _tiles("BLOCK", ((1024,), 4, 1), ((256,), 2, 1), ((2048,), 8, 1)),
        "ssd_bmm": _tiles("BLOCK_M BLOCK_N BLOCK_K", ((64, 64, 32), 4, 3), ((32, 32, 32), 4, 2), ((128, 64, 32), 8, 2)),
        "ssd_chunk_scan": _tiles(
            "BLOCK_M BLOCK_P BLOCK_K BLOCK_N",
            ((64, 64, 32, 64), 4, 2),
            ((32, 64, 32, 64), 4, 2),
            ((128, 64, 32, 64), 8, 2),
            ((16, 32, 16, 32), 2, 1),
        ),
        "conv_prefill": _tiles("BLOCK_D", ((128,), 1, 1), ((64,), 2, 1), ((256,), 2, 1)),
        "conv_update": _tiles("BLOCK_D", ((256,), 4, 1), ((64,), 2, 1)),
        "ssu": _tiles("BLOCK_P", ((32,), 4, 1), ((64,), 8, 1), ((4,), 2, 1)),
        "norm": _tiles("BLOCK_ROWS", ((1,), 4, 1), ((1,), 16, 1), ((2,), 8, 1)),
    }
)


@dataclass(frozen=True)
class Choice:
    """The tile for sizes of at most `up_to`; the last choice of a kernel is for all larger ones."""

    up_to: float
    tile: Tile


# Kernel -> choices by one size of the call, measured on an H200 with bf16 activations (benchmarks/NOTES.md has them all).
CHOICES = MappingProxyType(
    {
        # Bytes of a state element: 32 channels by 4 warps reach 90 % of copy bandwidth with float32 states, 88 % with
        # bf16 ones, 64 by 8 87 % and 89 %.
        "ssu": (Choice(2, CANDIDATES["ssu"][1]), Choice(math.inf, CANDIDATES["ssu"][0])),
        # Channels of a group: at 3,072 4 warps reach 93 % and 16 89 %; at 8,192 83 % and 96 %.
        "norm": (Choice(4096, CANDIDATES["norm"][0]), Choice(math.inf, CANDIDATES["norm"][1])),
    }
)

_PINNED: ContextVar[MappingProxyType[str, Tile]] = ContextVar("pinned_tiles", default=MappingProxyType({}))


def is_pinned(kernel_name: str) -> bool:
    """Whether a tile of the kernel is pinned, which also asks for the path that the kernel lies on."""
    return kernel_name in _PINNED.get()


def tile_for(kernel_name: str, size: float = 0) -> Tile:
    """The pinned tile of a kernel, else the one chosen for the size that its choices go by, else its first candidate."""
    pinned = _PINNED.get().get(kernel_name)
    if pinned is not None:
        return pinned
    for choice in CHOICES.get(kernel_name, ()):
        if size <= choice.up_to:
            return choice.tile
    return CANDIDATES[kernel_name][0]


@contextmanager
def pin_tiles(kernel_name: str, tile: Tile) -> Iterator[None]:
    """Use `tile` for one kernel within the block. Pins of several kernels nest.

    Raises ValueError for an unknown kernel or block sizes under other names than the kernel's.
    """
    if kernel_name not in CANDIDATES:
        raise ValueError(f"kernel_name must be one of {', '.join(CANDIDATES)}; got {kernel_name!r}")
    wanted = [name for name, _ in CANDIDATES[kernel_name][0].blocks]
    given = [name for name, _ in tile.blocks]
    if wanted != given:
        raise ValueError(f"tile of {kernel_name} must set {wanted}, got {given}")
    token = _PINNED.set(MappingProxyType({**_PINNED.get(), kernel_name: tile}))
    try:
        yield
    finally:
        _PINNED.reset(token)
