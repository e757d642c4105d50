"""What every adapter offers, so that a case never knows which layout or era it runs on. No layout's names live here."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from torch import Tensor

from mamba2_conformance.problem import Convolution, ConvolutionStep, GatedNorm, Scan, StateStep
from mamba2_conformance.trait import Trait


@dataclass(frozen=True, eq=False)
class ScanResult:
    """out (T,H,P), final states (sequences,H,P,N), and the state after each chunk with the chunks' ends in tokens."""

    out: Tensor
    final_states: Tensor
    states: Tensor | None = None
    chunk_ends: tuple[int, ...] = ()


class LoadError(Exception):
    """Kernels that cannot be judged: `kind` and `reason` are the channel's failure kind and reason code."""

    def __init__(self, *, kind: str, reason: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind
        self.reason = reason


class NotJudged(Exception):  # noqa: N818 - it is an outcome: a case that could not be put
    """A function that this commit does not have, or that cannot run here: its text says which and why."""


class Adapter(Protocol):
    """The five functions of one commit. Kernels raise what they raise; a function that is not there raises NotJudged."""

    @property
    def layout(self) -> str:
        """The word for how the repository keeps its kernels."""

    @property
    def era(self) -> str:
        """The API generation found by signature."""

    @property
    def backends(self) -> tuple[str, ...]:
        """The backends that the commit ships, whether or not they work."""

    @property
    def lacks(self) -> frozenset[Trait]:
        """What these kernels do not have at all: such cases are not asked."""

    @property
    def outside(self) -> frozenset[Trait]:
        """What the kernels' own callers never ask for: such cases are shown and decide nothing."""

    def metadata(self, lens: tuple[int, ...], chunk_size: int) -> object:
        """Build the batch's metadata; raises what the kernels raise for what they refuse."""

    def scan(self, problem: Scan, *, backend: str, out: Tensor | None = None, states: bool = False) -> ScanResult:
        """SSD prefill, written to `out` if given; `states` asks for the states after each chunk as well."""

    def convolution(self, problem: Convolution, *, backend: str, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """out (T,channels), final states (sequences,channels,width-1)."""

    def convolution_step(self, problem: ConvolutionStep, *, backend: str) -> Tensor:
        """out (rows,channels); the state changes in place."""

    def state_step(self, problem: StateStep, *, backend: str, out: Tensor | None = None) -> Tensor:
        """out (rows,H,P); the state changes in place."""

    def gated_norm(self, problem: GatedNorm, *, backend: str) -> Tensor:
        """out (rows,channels)."""

    def tiles(self) -> Mapping[str, tuple[object, ...]]:
        """Tile candidates of each tuned kernel of the Triton backend; empty if it tunes nothing."""

    def pinned(self, kernel: str, tile: object) -> AbstractContextManager[object]:
        """Inside the block, `kernel` uses `tile` whatever a tuner would choose."""

    def every_tile(self) -> AbstractContextManager[object]:
        """Inside the block, tuners have all their candidates; only for launches that do not happen."""
