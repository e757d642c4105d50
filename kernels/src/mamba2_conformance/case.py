"""One question to the kernels, and its answer. Which there are is in `cases`; how they are run, in `runner`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from mamba2_conformance.adapters.protocol import Adapter
from mamba2_conformance.deviation import Deviation
from mamba2_conformance.draw import Draw
from mamba2_conformance.trait import Trait

CONTRACT, OUTSIDE = "contract", "outside"


@dataclass(frozen=True)
class Subject:
    """What a case is put to: one backend of one commit, with the case's own source of random numbers."""

    adapter: Adapter
    backend: str
    draw: Draw


@dataclass(frozen=True)
class Case:
    """`check` returns one deviation for each output it looked at. Whatever it raises is a failed case, not a crash.

    kind: `contract` cases decide, `outside` cases are shown. backends: None for every backend. traits: with one that
    the adapter lacks the case is not asked, with one outside its kernels' contract it becomes `outside`. needs_gpu:
    not asked on a CPU, where it could not fail for its reason, or would take minutes.
    """

    name: str
    config: str
    check: Callable[[Subject], Sequence[Deviation]]
    kind: str = CONTRACT
    backends: frozenset[str] | None = None
    traits: frozenset[Trait] = frozenset()
    needs_gpu: bool = False

    def asks(self, backend: str) -> bool:
        return self.backends is None or backend in self.backends

    def kind_for(self, adapter: Adapter) -> str:
        return OUTSIDE if self.traits & adapter.outside else self.kind


@dataclass(frozen=True)
class Outcome:
    """A case on a backend: the worst of its deviations. `tolerance` and errors are those of that output."""

    name: str
    kind: str
    backend: str
    passed: bool
    max_abs_err: float | None
    max_rel_err: float | None
    tolerance: float
    config: str
    message: str
