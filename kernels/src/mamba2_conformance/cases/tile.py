"""Every tile a tuner may choose gives the right numbers, not only the one it would choose on the machine at hand.

vLLM PR 21783's bug showed only where the tile was smaller than the chunk, which one GPU's tuner picked and another's
did not. Kernels of the scan are swept from a carried state, for that is where it showed.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from mamba2_conformance import oracle, tolerance
from mamba2_conformance.adapters.protocol import Adapter
from mamba2_conformance.case import Case, Subject
from mamba2_conformance.cases import convolution, scanned, state_update
from mamba2_conformance.deviation import Deviation, deviation
from mamba2_conformance.draw import ScanShape

BACKEND = "triton"

SHAPE = ScanShape((37, 70), 64, heads=1, head_dim=32, state_size=32, options=frozenset({"initial_states"}))
"""Two sequences of odd lengths, longer than a small tile, shorter than a large one, over one chunk and under."""

Check = Callable[[Subject], Sequence[Deviation]]


def cases(adapter: Adapter) -> Iterator[Case]:
    for kernel, tiles in adapter.tiles().items():
        subject, config, check = operator_of(kernel)
        for tile in tiles:
            name = f"{subject}/tile_{kernel}_{label(tile)}"
            yield Case(name, f"{config}, {kernel} {tile}", pinned(check, kernel, tile), backends=frozenset({BACKEND}))


def pinned(check: Check, kernel: str, tile: object) -> Check:
    def check_pinned(subject: Subject) -> Sequence[Deviation]:
        with subject.adapter.pinned(kernel, tile):
            return check(subject)

    return check_pinned


def operator_of(kernel: str) -> tuple[str, str, Check]:
    """The case's subject, its configuration and what to call so that this kernel runs."""
    if "norm" in kernel:
        return "gated_norm", "rows 5, channels 96", norm
    if "conv" in kernel:
        return ("convolution", "rows 5, channels 40", step) if "update" in kernel else ("convolution", CONV, prefill)
    if "state_update" in kernel or "ssu" in kernel:
        return "state_update", "rows 2, heads 2 x 16, state 16", update
    return "carried_state", str(SHAPE), scan


CONV = convolution.config(4, convolution.LENS)


def scan(subject: Subject) -> Sequence[Deviation]:
    return scanned.compared(subject, subject.draw.scan(SHAPE))


def prefill(subject: Subject) -> Sequence[Deviation]:
    problem = subject.draw.convolution(convolution.LENS, channels=convolution.CHANNELS, width=4, initial_states=True)
    return convolution.compared(subject, problem)


def step(subject: Subject) -> Sequence[Deviation]:
    problem = subject.draw.convolution_step(5, channels=convolution.CHANNELS, width=4)
    out, states = oracle.convolution_step(problem)
    got = subject.adapter.convolution_step(problem, backend=subject.backend)
    limit = tolerance.relative([problem.x.dtype])
    return [deviation("out", got, out, limit), deviation("state", problem.state, states, limit)]


def update(subject: Subject) -> Sequence[Deviation]:
    return state_update.stepped(subject, subject.draw.state_step(2, heads=2))


def norm(subject: Subject) -> Sequence[Deviation]:
    problem = subject.draw.gated_norm(5, 96)
    got = subject.adapter.gated_norm(problem, backend=subject.backend)
    return [deviation("out", got, oracle.gated_norm(problem), tolerance.relative([problem.x.dtype]))]


def label(tile: object) -> str:
    """A tile as a part of a name: its numbers and words, joined."""
    return "_".join(re.findall(r"[A-Za-z0-9]+", str(tile)))
