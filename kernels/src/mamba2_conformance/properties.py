"""What holds for every shape: relations between calls of one kernel, each of them also held against the oracle.

Which shapes are tried is decided elsewhere; a property draws its numbers from the subject's own source.
"""

from collections.abc import Sequence

import torch

from mamba2_conformance import oracle, tolerance
from mamba2_conformance.case import Subject
from mamba2_conformance.deviation import Deviation, deviation, same_bits
from mamba2_conformance.draw import ScanShape
from mamba2_conformance.oracle import exact
from mamba2_conformance.poison import nan_like
from mamba2_conformance.problem import Scan, cut, rows_of, spans


def packed_equals_alone(subject: Subject, shape: ScanShape) -> list[Deviation]:
    """Each sequence by itself gives what it gives among the others, and every output is written."""
    packed = subject.draw.scan(shape)
    want, limit = oracle.scan(packed), tolerance.of_scan(packed)
    out = nan_like(packed.x)
    got = subject.adapter.scan(packed, backend=subject.backend, out=out)
    found = [
        deviation("packed out", out, want.out, limit),
        deviation("packed states", got.final_states, want.final_states, limit),
    ]
    for sequence, (start, end) in enumerate(spans(shape.lens)):
        alone = subject.adapter.scan(rows_of(packed, [sequence]), backend=subject.backend)
        found.append(deviation(f"sequence {sequence} out", alone.out, exact(out[start:end]), limit))
        found.append(
            deviation(f"sequence {sequence} state", alone.final_states[0], exact(got.final_states[sequence]), limit)
        )
    return found


def split_equals_whole(subject: Subject, shape: ScanShape, taken: Sequence[int]) -> list[Deviation]:
    """The first `taken` tokens of each sequence, then the rest from the states they left, equal one call of all."""
    whole = subject.draw.scan(shape)
    want, limit = oracle.scan(whole), tolerance.of_scan(whole)
    first = [(start, start + count) for (start, _), count in zip(spans(shape.lens), taken, strict=True)]
    rest = [(middle, end) for (_, middle), (_, end) in zip(first, spans(shape.lens), strict=True)]
    out, states = nan_like(whole.x), whole.initial_states
    for parts in (first, rest):
        got = subject.adapter.scan(cut(whole, parts, states), backend=subject.backend)
        states = got.final_states
        for (start, end), (place, last) in zip(parts, spans([end - start for start, end in parts]), strict=True):
            out[start:end] = got.out[place:last]
    return [deviation("out", out, want.out, limit), deviation("states", got.final_states, want.final_states, limit)]


def permuted_alike(subject: Subject, shape: ScanShape, order: Sequence[int]) -> list[Deviation]:
    """The sequences in another order give the same, in that order."""
    problem = subject.draw.scan(shape)
    shuffled: Scan = rows_of(problem, order)
    want, limit = oracle.scan(shuffled), tolerance.of_scan(shuffled)
    out = nan_like(shuffled.x)
    got = subject.adapter.scan(shuffled, backend=subject.backend, out=out)
    plain = subject.adapter.scan(problem, backend=subject.backend)
    places = [token for sequence in order for token in range(*spans(shape.lens)[sequence])]
    return [
        deviation("out", out, want.out, limit),
        deviation("states", got.final_states, want.final_states, limit),
        deviation("out in place", out, exact(plain.out[places]), limit),
        deviation("states in place", got.final_states, exact(plain.final_states[list(order)]), limit),
    ]


def repeated_to_the_bit(subject: Subject, shape: ScanShape) -> list[Deviation]:
    """Two calls with the same tile give the same bits: no sum depends on which program came first."""
    problem = subject.draw.scan(shape)
    first = subject.adapter.scan(problem, backend=subject.backend)
    second = subject.adapter.scan(problem, backend=subject.backend)
    return [
        same_bits("out", second.out, first.out),
        same_bits("final_states", second.final_states, first.final_states),
    ]


def slots_left_alone(memory: torch.Tensor, before: torch.Tensor, listed: Sequence[int]) -> Deviation:
    """Every slot but the listed ones is what it was, bit for bit."""
    others = [slot for slot in range(len(memory)) if slot not in listed]
    return same_bits("slots not listed", memory[others], before[others])
