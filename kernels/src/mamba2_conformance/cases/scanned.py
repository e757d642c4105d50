"""The step that SSD cases share: call the scan into a poisoned buffer and compare all it returns with the oracle."""

from collections.abc import Callable, Sequence

from mamba2_conformance import oracle, tolerance
from mamba2_conformance.case import Case, Subject
from mamba2_conformance.deviation import Deviation, deviation, holds
from mamba2_conformance.draw import ScanShape
from mamba2_conformance.poison import nan_like
from mamba2_conformance.problem import Scan
from mamba2_conformance.trait import Trait


def compared(subject: Subject, problem: Scan, label: str = "") -> list[Deviation]:
    """Outputs and final states of one call against the oracle; the buffer handed in must be the one returned."""
    want, limit = oracle.scan(problem), tolerance.of_scan(problem)
    buffer = nan_like(problem.x)
    got = subject.adapter.scan(problem, backend=subject.backend, out=buffer)
    return [
        deviation(f"{label}out", buffer, want.out, limit),
        deviation(f"{label}final_states", got.final_states, want.final_states, limit),
        holds(f"{label}out", got.out.data_ptr() == buffer.data_ptr(), f"{label}out given was not the out returned"),
    ]


def scan_case(
    name: str,
    shape: ScanShape,
    change: Callable[[Scan], Scan] = lambda problem: problem,
    asking: frozenset[Trait] = frozenset(),
) -> Case:
    """A case that draws a problem of this shape, changes it, and compares one call of it. asking: traits that the shape
    does not tell."""
    traits = asking | ({Trait.EMPTY_SEQUENCES} if 0 in shape.lens else set())
    traits |= {Trait.STATE_DTYPE} if shape.state_dtype else set()

    def check(subject: Subject) -> Sequence[Deviation]:
        return compared(subject, change(subject.draw.scan(shape)))

    return Case(name, str(shape), check, traits=traits)
