"""The list of all cases. A new subject is one file beside this one and one line here."""

from collections.abc import Iterator

from mamba2_conformance.adapters.protocol import Adapter
from mamba2_conformance.case import Case
from mamba2_conformance.cases import (
    carried_state,
    chunk_size,
    convolution,
    gated_norm,
    option,
    packing,
    state_update,
    tile,
)


def cases_for(adapter: Adapter, backend: str) -> list[Case]:
    """All cases of one backend, in a fixed order; tile sweeps only where the backend has tiles."""
    return [*fixed(), *(tile.cases(adapter) if backend == tile.BACKEND else ())]


def fixed() -> Iterator[Case]:
    """The cases that do not depend on what the commit ships."""
    for subject in (carried_state, packing, chunk_size, option, convolution, state_update, gated_norm):
        yield from subject.cases()
