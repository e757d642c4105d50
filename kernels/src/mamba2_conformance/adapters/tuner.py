"""Triton's tuned kernels in a commit's modules: their tiles, and one of them in force at a time.

Nothing is ever tuned: a tuner times candidates and picks by the machine at hand, so that a check would depend on it.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from types import ModuleType
from typing import Any

from triton import knobs
from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime.autotuner import Autotuner, Heuristics
from triton.runtime.errors import OutOfResources, PTXASError

from mamba2_conformance.adapters.protocol import NotJudged

PASSED_OVER = (OutOfResources, PTXASError, CompileTimeAssertionFailure)
"""What a tuner takes from a candidate for a reason to try the others."""


@dataclass(frozen=True, eq=False)
class Tile:
    """One of a tuner's candidates; its text is the same from commit to commit."""

    config: Any

    def __str__(self) -> str:
        sizes = " ".join(f"{short(name)}{value}" for name, value in sorted(self.config.kwargs.items()))
        return sizes if knobs.runtime.interpret else f"{sizes} w{self.config.num_warps} s{self.config.num_stages}"

    @property
    def size(self) -> int:
        return prod(value for value in self.config.kwargs.values() if isinstance(value, int))


@dataclass(frozen=True, eq=False)
class Tuners:
    """Kernel name -> its tuner, and its tiles, the smallest first: that is in force unless another one is pinned.

    The smallest, because a tile below the chunk is where a carried state has been lost (vLLM PR 21783).
    """

    tuners: Mapping[str, Any]
    tiles: Mapping[str, tuple[Tile, ...]]

    @contextmanager
    def pinned(self, kernel: str, tile: object) -> Iterator[None]:
        if not isinstance(tile, Tile):
            raise TypeError(f"{tile!r} is no tile of {kernel}")
        tuner = self.tuners[kernel]
        before, tuner.configs = tuner.configs, [tile.config]
        try:
            yield
        except PASSED_OVER as error:
            if len(self.tiles[kernel]) == 1:
                raise
            raise NotJudged(f"{tile} does not fit this GPU, so a tuner passes it over: {error}") from error
        finally:
            tuner.configs = before

    @contextmanager
    def released(self) -> Iterator[None]:
        """All candidates, for launches that are written down instead of started: nothing may be timed."""
        before = {kernel: tuner.configs for kernel, tuner in self.tuners.items()}
        for kernel, tiles in self.tiles.items():
            self.tuners[kernel].configs = [tile.config for tile in tiles]
        try:
            yield
        finally:
            for kernel, configs in before.items():
                self.tuners[kernel].configs = configs


def tuners_in(modules: Iterable[ModuleType]) -> Tuners:
    """The tuners of these modules, each set to its smallest tile."""
    found = [tuner_of(value) for module in modules for value in vars(module).values()]
    tuners = {name_of(tuner): tuner for tuner in found if tuner is not None}
    tiles = {kernel: distinct(tuner) for kernel, tuner in tuners.items()}
    for kernel, tuner in tuners.items():
        tuner.configs = [tiles[kernel][0].config]
    return Tuners(tuners, tiles)


def distinct(tuner: Any) -> tuple[Tile, ...]:
    """Tiles that differ in what runs here: the interpreter knows neither warps nor stages."""
    tiles = sorted((Tile(config) for config in tuner.configs), key=lambda tile: (tile.size, str(tile)))
    return tuple({str(tile): tile for tile in tiles}.values())


def tuner_of(value: Any) -> Any:
    """The tuner that a module's name stands for, also below heuristics; None for anything else."""
    while isinstance(value, Heuristics):
        value = value.fn
    return value if isinstance(value, Autotuner) else None


def name_of(tuner: Any) -> str:
    """The kernel's own name."""
    return str(getattr(tuner.base_fn, "__name__", tuner.base_fn)).strip("_").removesuffix("_kernel")


def short(parameter: str) -> str:
    """BLOCK_SIZE_M -> M, BLOCK_SIZE -> B."""
    return parameter.removeprefix("BLOCK_SIZE").strip("_") or "B"
