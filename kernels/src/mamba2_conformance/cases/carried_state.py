"""Sequences that start from a state: chunked prefill, and the lengths at which vLLM's kernels lost it.

Only these cases hand a scan initial states, so that a bug in carrying the state shows here and nowhere else.
The lengths are those of vLLM PRs 21783 and 23279, at which one bug of the two shows without the other or both do.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch

from mamba2_conformance import oracle, tolerance
from mamba2_conformance.case import OUTSIDE, Case, Subject
from mamba2_conformance.cases.scanned import compared, scan_case
from mamba2_conformance.deviation import Deviation, deviation, same_bits
from mamba2_conformance.draw import ScanShape
from mamba2_conformance.poison import nan_like
from mamba2_conformance.problem import Scan, StateStep, cut, spans
from mamba2_conformance.trait import Trait

LENS = ((138, 225), (40, 100, 37), (40, 88), (10, 118), (200, 56), (70, 58, 128))
STATE = frozenset({"initial_states"})
BETWEEN = frozenset({Trait.INTERMEDIATE_STATES})
ODD = ScanShape((21, 1, 50), options=STATE)
WHOLE = ScanShape((70, 37), heads=1)
CACHED = ScanShape((20, 28, 36), 8, options=STATE)
SHORT = ScanShape((8, 8), options=STATE)

IN_FLOAT32 = frozenset({"torch", "triton"})
"""Backends that keep a state between chunks in the dtype in which they return it; a float64 reference does not."""

SPLITS = {
    "at_a_chunk": ((32, 32), (38, 5)),
    "inside_a_chunk": ((20, 30), (50, 7)),
    "in_three": ((1, 30), (10, 1), (59, 6)),
    "last_token_alone": ((69, 36), (1, 1)),
    "one_starts_later": ((40, 0), (30, 37)),
}
"""Name -> tokens of each sequence of WHOLE taken in each step; a step's tokens are packed, as engines do."""


def cases() -> Iterator[Case]:
    for lens in LENS:
        shape = ScanShape(lens, 128, heads=1, head_dim=32, state_size=32, options=STATE)
        yield scan_case(f"carried_state/lens_{'_'.join(map(str, lens))}", shape)
    for name, steps in SPLITS.items():
        yield split_case(f"carried_state/split_{name}", steps)
    yield from (scan_case(f"carried_state/chunk_{size}", replace(ODD, chunk_size=size)) for size in (16, 64))
    yield scan_case("carried_state/one_sequence", replace(ODD, lens=(64,)))
    yield scan_case("carried_state/one_token_each", replace(ODD, lens=(1, 1, 1)))
    yield scan_case("carried_state/empty_between", replace(ODD, lens=(0, 5, 0, 0, 7, 0)))
    yield scan_case("carried_state/empty_all", replace(ODD, lens=(0, 0)))
    yield scan_case("carried_state/everything", EVERYTHING)
    yield scan_case("carried_state/bfloat16", replace(ODD, dtype=torch.bfloat16))
    yield scan_case("carried_state/bfloat16_state", replace(ODD, state_dtype=torch.bfloat16), asking=MIXED)
    yield scan_case("carried_state/bfloat16_initial_states", ODD, in_bfloat16, asking=MIXED)
    yield scan_case("carried_state/bfloat16_states", replace(ODD, state_dtype=torch.bfloat16), in_bfloat16)
    yield Case("carried_state/slot_pool", str(ODD), through_a_slot_pool)
    yield Case("carried_state/cached_states", str(CACHED), cached_states, traits=BETWEEN)
    yield Case("carried_state/step_by_step", str(SHORT), step_by_step)
    yield Case("carried_state/bits_of_a_split", str(WHOLE), bits_of_a_split, kind=OUTSIDE, backends=IN_FLOAT32)
    yield Case("carried_state/intermediate_states", str(ODD), intermediate_states, traits=BETWEEN)
    yield Case("carried_state/initial_states_unchanged", str(ODD), initial_states_unchanged)
    yield Case("carried_state/prefill_then_decode", str(WHOLE), prefill_then_decode)


EVERYTHING = ScanShape(
    (21, 1, 40), heads=4, groups=2, options=frozenset({"initial_states", "D", "z", "dt_bias"}), dt_softplus=True
)


MIXED = frozenset({Trait.MIXED_STATES})
"""States come in another dtype than they leave in."""


def in_bfloat16(problem: Scan) -> Scan:
    states = problem.initial_states
    return replace(problem, initial_states=None if states is None else states.to(torch.bfloat16))


def split_case(name: str, steps: Sequence[Sequence[int]]) -> Case:
    """The whole prompts in one call, by the oracle, against the kernel's steps with the state carried between them."""

    def check(subject: Subject) -> Sequence[Deviation]:
        whole = subject.draw.scan(WHOLE)
        want, limit = oracle.scan(whole), tolerance.of_scan(whole)
        out, state = in_steps(subject, whole, steps)
        return [deviation("out", out, want.out, limit), deviation("final_states", state, want.final_states, limit)]

    traits = frozenset({Trait.EMPTY_SEQUENCES} if any(0 in step for step in steps) else ())
    return Case(name, f"{WHOLE}, steps {' | '.join(' '.join(map(str, step)) for step in steps)}", check, traits=traits)


def in_steps(subject: Subject, whole: Scan, steps: Sequence[Sequence[int]]) -> tuple[torch.Tensor, torch.Tensor]:
    """Outputs of all steps put back where their tokens are, and the last step's states."""
    out = nan_like(whole.x)
    places = [start for start, _ in spans(whole.lens)]
    state: torch.Tensor | None = None
    for step in steps:
        parts = [(place, place + taken) for place, taken in zip(places, step, strict=True)]
        got = subject.adapter.scan(cut(whole, parts, state), backend=subject.backend)
        state = got.final_states
        for (start, end), (first, last) in zip(parts, spans(step), strict=True):
            out[start:end] = got.out[first:last]
        places = [end for _, end in parts]
    if state is None:
        raise ValueError("a split needs at least one step")
    return out, state


def intermediate_states(subject: Subject) -> Sequence[Deviation]:
    problem = subject.draw.scan(ODD)
    got = subject.adapter.scan(problem, backend=subject.backend, states=True)
    states = torch.empty(0) if got.states is None else got.states
    want = oracle.scan(problem, got.chunk_ends)
    return [deviation("intermediate_states", states, want.states_after, tolerance.of_scan(problem))]


def through_a_slot_pool(subject: Subject) -> Sequence[Deviation]:
    """States come from slots wider than they are, go back there, and serve the next call (vLLM 14778, 14848)."""
    problem = subject.draw.scan(ODD)
    states = problem.initial_states
    if states is None:
        raise ValueError("this case needs initial states")
    pool = torch.full((len(ODD.lens), ODD.heads + 1, *states.shape[2:]), float("nan"), device=states.device)
    slots = pool[:, : ODD.heads]
    slots.copy_(states)
    first = compared(subject, replace(problem, initial_states=slots), "first ")
    got = subject.adapter.scan(replace(problem, initial_states=slots), backend=subject.backend)
    slots.copy_(got.final_states)
    return [*first, *compared(subject, replace(problem, initial_states=slots), "second ")]


def cached_states(subject: Subject) -> Sequence[Deviation]:
    """What a prefix cache keeps of a later sequence equals a run of that prefix alone (sglang 31833, 33450)."""
    problem = subject.draw.scan(CACHED)
    got = subject.adapter.scan(problem, backend=subject.backend, states=True)
    deviations = []
    for sequence, (start, end) in enumerate(spans(CACHED.lens)):
        aligned = list(range(start + CACHED.chunk_size, end, CACHED.chunk_size))
        states = torch.empty(0) if got.states is None else got.states[[got.chunk_ends.index(end) for end in aligned]]
        want = oracle.scan(problem, aligned).states_after
        deviations.append(deviation(f"sequence {sequence} states", states, want, tolerance.of_scan(problem)))
    return deviations


def step_by_step(subject: Subject) -> Sequence[Deviation]:
    """Tokens taken at once from a state give what they give one by one (transformers 46741)."""
    problem = subject.draw.scan(SHORT)
    state = problem.initial_states
    if state is None:
        raise ValueError("this case needs initial states")
    state, out = state.clone(), nan_like(problem.x)
    for token in range(SHORT.lens[0]):
        rows = [start + token for start, _ in spans(SHORT.lens)]
        step = StateStep(state, problem.x[rows], problem.dt[rows], problem.A, problem.B[rows], problem.C[rows])
        out[rows] = subject.adapter.state_step(step, backend=subject.backend)
    want, limit = oracle.scan(problem), tolerance.of_scan(problem)
    one_by_one = [
        deviation("out one by one", out, want.out, limit),
        deviation("state one by one", state, want.final_states, limit),
    ]
    return [*one_by_one, *compared(subject, problem, "at once ")]


def bits_of_a_split(subject: Subject) -> Sequence[Deviation]:
    """Chunked prefill repeats the whole prompt bit for bit if steps end at chunks (vLLM 38561, 54993): told only."""
    whole = subject.draw.scan(WHOLE)
    out, state = in_steps(subject, whole, SPLITS["at_a_chunk"])
    got = subject.adapter.scan(whole, backend=subject.backend)
    return [same_bits("out", out, got.out), same_bits("final_states", state, got.final_states)]


def initial_states_unchanged(subject: Subject) -> Sequence[Deviation]:
    """The caller's states are a cache that others read: a prefill must not write over them."""
    problem = subject.draw.scan(ODD)
    states = problem.initial_states
    if states is None:
        raise ValueError("this case needs initial states")
    before = states.clone()
    return [*compared(subject, problem), same_bits("initial_states", states, before)]


def prefill_then_decode(subject: Subject) -> Sequence[Deviation]:
    """A prompt's state after the prefill, stepped token by token, gives what one prefill of all tokens gives."""
    whole = subject.draw.scan(WHOLE)
    want, limit = oracle.scan(whole), tolerance.of_scan(whole)
    decoded = 4
    ends = [end for _, end in spans(whole.lens)]
    prompts = cut(whole, [(start, end - decoded) for start, end in spans(whole.lens)], None)
    state = subject.adapter.scan(prompts, backend=subject.backend).final_states
    out = []
    for back in range(decoded, 0, -1):
        rows = [end - back for end in ends]
        step = StateStep(state, whole.x[rows], whole.dt[rows], whole.A, whole.B[rows], whole.C[rows])
        out.append(subject.adapter.state_step(step, backend=subject.backend))
    wanted = [[end - back for end in ends] for back in range(decoded, 0, -1)]
    return [
        deviation("out", torch.stack(out), want.out[wanted], limit),
        deviation("final_states", state, want.final_states, limit),
    ]
