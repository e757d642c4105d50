"""The list of all cases. A new subject is one file beside this one and one line here."""

from collections.abc import Iterator, Sequence

from mamba2_conformance.adapters.protocol import Adapter
from mamba2_conformance.case import Case, Subject
from mamba2_conformance.cases import (
    carried_state,
    chunk_size,
    convolution,
    far_memory,
    gated_norm,
    on_a_gpu,
    option,
    packing,
    random_shape,
    state_update,
    tile,
)
from mamba2_conformance.deviation import Deviation


def cases_for(adapter: Adapter, backend: str) -> list[Case]:
    """All cases of one backend, in a fixed order; tile sweeps only where the backend has tiles."""
    return [*fixed(), *on_a_gpu.shapes(), *random_shape.cases(), *(sweeps(adapter) if backend == tile.BACKEND else ())]


def sweeps(adapter: Adapter) -> list[Case]:
    """One case for each tile, or a single failing one where the list of tiles, which is the commit's, cannot be had."""
    try:
        return [*tile.cases(adapter), *far_memory.cases(), *on_a_gpu.cases(adapter)]
    except (Exception, SystemExit) as error:
        return [unlisted(error)]


def unlisted(error: BaseException) -> Case:
    def check(subject: Subject) -> Sequence[Deviation]:
        raise error

    return Case("tile/candidates", "", check)


def fixed() -> Iterator[Case]:
    """The cases that do not depend on what the commit ships."""
    for subject in (carried_state, packing, chunk_size, option, convolution, state_update, gated_norm):
        yield from subject.cases()
