"""A packed sequence gives what it gives alone, whatever lies beside it, empty and one-token sequences included."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from mamba2_conformance import oracle, tolerance
from mamba2_conformance.case import Case, Subject
from mamba2_conformance.cases.scanned import compared, scan_case
from mamba2_conformance.deviation import Deviation, deviation, holds
from mamba2_conformance.draw import ScanShape
from mamba2_conformance.problem import rows_of
from mamba2_conformance.trait import Trait

BETWEEN = frozenset({Trait.INTERMEDIATE_STATES})
ODD = ScanShape((21, 1, 50))

WIDE_STATE = ScanShape((20, 30), heads=1, state_size=256)
"""vLLM PR 28295: a state wider than 128 without a carried one named a variable that did not exist."""

SHARDED = ScanShape((9, 20), heads=4)


def cases() -> Iterator[Case]:
    yield Case("packing/alone_equals_packed", str(ODD), alone_equals_packed)
    yield scan_case("packing/one_sequence", ScanShape((75,)))
    yield scan_case("packing/one_token_each", ScanShape((1, 1, 1)))
    yield scan_case("packing/one_token_between", ScanShape((33, 1, 31)))
    yield scan_case("packing/chunk_aligned", ScanShape((32, 64)))
    yield scan_case("packing/empty_between", ScanShape((0, 5, 0, 0, 7, 0)))
    yield scan_case("packing/empty_all", ScanShape((0, 0)))
    yield scan_case("packing/lens_138_225", ScanShape((138, 225), 128, heads=1, head_dim=32, state_size=32))
    yield scan_case("packing/state_256", WIDE_STATE)
    yield Case("packing/sharded_heads", str(SHARDED), sharded_heads)
    yield Case("packing/sharded_groups", str(replace(SHARDED, groups=2)), sharded_groups)
    yield Case("packing/fresh_output", str(ODD), fresh_output)
    yield Case("packing/intermediate_states", str(ODD), intermediate_states, traits=BETWEEN)
    yield Case("packing/strided_inputs", str(ODD), strided_inputs)


def alone_equals_packed(subject: Subject) -> Sequence[Deviation]:
    packed = subject.draw.scan(ODD)
    deviations = compared(subject, packed, "packed ")
    for sequence in range(len(packed.lens)):
        deviations += compared(subject, rows_of(packed, [sequence]), f"sequence {sequence} alone ")
    return deviations


def sharded_heads(subject: Subject) -> Sequence[Deviation]:
    """Tensor parallelism: half the heads on each rank, the one group on both, give the whole (vLLM 13660, 33257)."""
    return in_shards(subject, SHARDED, [slice(0, 1), slice(0, 1)])


def sharded_groups(subject: Subject) -> Sequence[Deviation]:
    """The same with a group for each rank."""
    return in_shards(subject, replace(SHARDED, groups=2), [slice(0, 1), slice(1, 2)])


def in_shards(subject: Subject, shape: ScanShape, groups: Sequence[slice]) -> Sequence[Deviation]:
    whole = subject.draw.scan(shape)
    want, limit = oracle.scan(whole), tolerance.of_scan(whole)
    size = shape.heads // len(groups)
    parts = []
    for rank, group in enumerate(groups):
        heads = slice(rank * size, (rank + 1) * size)
        part = replace(
            whole,
            x=whole.x[:, heads],
            dt=whole.dt[:, heads],
            A=whole.A[heads],
            B=whole.B[:, group],
            C=whole.C[:, group],
        )
        parts.append(subject.adapter.scan(part, backend=subject.backend))
    return [
        deviation("out", torch.cat([part.out for part in parts], 1), want.out, limit),
        deviation("final_states", torch.cat([part.final_states for part in parts], 1), want.final_states, limit),
    ]


def fresh_output(subject: Subject) -> Sequence[Deviation]:
    """Without a buffer the kernel makes its own, which must be written in full as well."""
    problem = subject.draw.scan(ODD)
    got = subject.adapter.scan(problem, backend=subject.backend)
    return [
        deviation("out", got.out, oracle.scan(problem).out, tolerance.of_scan(problem)),
        holds("out", got.out.dtype == problem.x.dtype, f"out is {got.out.dtype}, x is {problem.x.dtype}"),
    ]


def intermediate_states(subject: Subject) -> Sequence[Deviation]:
    """The state after each chunk is the state when that many tokens have gone in."""
    problem = subject.draw.scan(ODD)
    got = subject.adapter.scan(problem, backend=subject.backend, states=True)
    states = torch.empty(0) if got.states is None else got.states
    want = oracle.scan(problem, got.chunk_ends)
    limit = tolerance.of_scan(problem)
    return [
        deviation("intermediate_states", states, want.states_after, limit),
        deviation("out", got.out, want.out, limit),
        deviation("final_states", got.final_states, want.final_states, limit),
    ]


def strided_inputs(subject: Subject) -> Sequence[Deviation]:
    """x, B, C and dt are slices of one wide projection, as in the model: row strides exceed the row."""
    inner, state = ODD.heads * ODD.head_dim, ODD.groups * ODD.state_size
    wide = subject.draw.normal(sum(ODD.lens), inner + 2 * state + ODD.heads)
    x, B, C, dt = torch.split(wide, [inner, state, state, ODD.heads], dim=1)
    problem = replace(
        subject.draw.scan(ODD),
        x=x.unflatten(1, (ODD.heads, ODD.head_dim)),
        dt=dt,
        B=B.unflatten(1, (ODD.groups, ODD.state_size)),
        C=C.unflatten(1, (ODD.groups, ODD.state_size)),
        dt_softplus=True,
    )
    return compared(subject, problem)
