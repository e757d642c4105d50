"""What adapters to operators with Triton's tuners share: calls on the right device, tiles, and the gated norm, whose
arguments are the same in vLLM and state-spaces/mamba."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from typing import Any

from torch import Tensor

from mamba2_conformance.adapters.absent_gpu import device_contexts_ignored
from mamba2_conformance.adapters.interpreter import bfloat16_products
from mamba2_conformance.adapters.tuner import Tuners
from mamba2_conformance.problem import GatedNorm


class Tuned(ABC):
    """The shared half of an adapter; the other half has the fields."""

    tuners: Tuners

    @property
    @abstractmethod
    def norm(self) -> Callable[..., Any]:
        """The gated norm's function."""

    def gated_norm(self, problem: GatedNorm, *, backend: str) -> Tensor:
        arguments = {
            "x": problem.x, "weight": problem.weight, "bias": None, "z": problem.z, "eps": problem.eps,
            "group_size": problem.group_size, "norm_before_gate": problem.norm_before_gate,
        }  # fmt: skip
        out: Tensor = self._run(self.norm, problem.x, arguments)
        return out

    def tiles(self) -> Mapping[str, tuple[object, ...]]:
        return self.tuners.tiles

    def pinned(self, kernel: str, tile: object) -> AbstractContextManager[object]:
        return self.tuners.pinned(kernel, tile)

    def every_tile(self) -> AbstractContextManager[object]:
        return self.tuners.released()

    def _run(self, function: Callable[..., Any], on: Tensor, arguments: Mapping[str, object]) -> Any:
        with device_contexts_ignored(on.device), bfloat16_products():
            return function(**arguments)
