"""The chunk size is a matter of speed: each gives the same result; one that is no power of two is refused by name."""

from collections.abc import Iterator, Sequence

from mamba2_conformance.case import Case, Subject
from mamba2_conformance.cases.scanned import scan_case
from mamba2_conformance.deviation import Deviation, failed, holds
from mamba2_conformance.draw import ScanShape
from mamba2_conformance.trait import Trait

SIZES = (1, 4, 16, 64, 128)
REFUSED = (0, -32, 3, 29, 48, 100)


def cases() -> Iterator[Case]:
    for size in SIZES:
        lens = (3, 5) if size < 8 else (11, 13) if size < 32 else (21, 70)
        yield scan_case(f"chunk_size/of_{size}", ScanShape(lens, size))
    for size in REFUSED:
        yield refusal_case(size)


def refusal_case(size: int) -> Case:
    def check(subject: Subject) -> Sequence[Deviation]:
        return [refused(subject, size)]

    name = f"chunk_size/refused_{size}".replace("-", "minus_")
    return Case(name, f"lens 21 50, chunk {size}", check, traits=frozenset({Trait.CHUNK_SIZE_REFUSED}))


def refused(subject: Subject, size: int) -> Deviation:
    """A ValueError whose text names the argument and the value, so that a caller knows what to change."""
    try:
        subject.adapter.metadata((21, 50), size)
    except ValueError as error:
        named = "chunk_size" in str(error) and str(size) in str(error)
        return holds("refusal", named, f"the ValueError names neither chunk_size nor {size}: {error}")
    return failed("refusal", f"chunk_size {size} was accepted; expected a ValueError that names it")
