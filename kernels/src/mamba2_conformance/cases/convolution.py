"""The causal convolution: prefill of packed sequences with and without a past, and the one-token step into slots."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch

from mamba2_conformance import oracle, tolerance
from mamba2_conformance.case import Case, Subject
from mamba2_conformance.cases.slots import in_slots, slot_deviations
from mamba2_conformance.deviation import Deviation, deviation, holds, same_bits
from mamba2_conformance.draw import name_of
from mamba2_conformance.poison import nan_like
from mamba2_conformance.problem import Convolution, spans
from mamba2_conformance.trait import Trait

CHANNELS = 40
LENS = (1, 21, 2, 3)
WIDTHS = (2, 3, 4)


SHORT = (1, 2, 3, 5)
"""Shorter than the width, as long, and longer."""

UNUSUAL_WIDTHS = (1, 5, 6)
WIDE = frozenset({Trait.WIDE_CONVOLUTION})

DTYPES = {
    "bfloat16": (torch.bfloat16, torch.bfloat16),
    "bfloat16_with_float32_state": (torch.bfloat16, torch.float32),
    "float32_with_bfloat16_state": (torch.float32, torch.bfloat16),
}
"""Name -> dtype of inputs and of the state: vLLM 24883 failed or lost digits where they differ."""


def cases() -> Iterator[Case]:
    for case in unmarked():
        yield replace(case, traits=case.traits | {Trait.CONVOLUTION})


def unmarked() -> Iterator[Case]:
    for width in WIDTHS:
        yield prefill_case(f"convolution/width_{width}", width, past=False)
        yield prefill_case(f"convolution/width_{width}_with_past", width, past=True)
        yield step_case(f"convolution/step_width_{width}", width)
    for width in UNUSUAL_WIDTHS:
        yield Case(f"convolution/width_{width}", config(width, LENS), unusual(width), traits=WIDE)
    for name, (dtype, state_dtype) in DTYPES.items():
        yield step_case(f"convolution/step_{name}", 4, dtype=dtype, state_dtype=state_dtype)
    yield step_case("convolution/step_int64_slots", 4, slots=torch.int64)
    yield Case(
        "convolution/step_more_rows_than_slots", f"rows 8, 3 slots, channels {CHANNELS}, width 4", mostly_padding
    )
    yield prefill_case("convolution/linear", 4, past=True, activation=None)
    yield prefill_case("convolution/swish", 4, past=True, activation="swish")
    yield prefill_case("convolution/without_bias", 4, past=True, bias=False)
    yield prefill_case("convolution/chunk_aligned", 4, past=True, lens=(64, 16))
    yield prefill_case("convolution/empty_between", 4, past=False, lens=(0, 5, 0, 3, 0))
    yield prefill_case("convolution/empty_between_with_past", 4, past=True, lens=(0, 5, 0, 3, 0))
    yield Case("convolution/split_equals_whole", config(4, (30, 17)), split_equals_whole)
    yield Case("convolution/strided_input", config(4, LENS), strided_input)
    yield Case(
        "convolution/channel_major_input",
        config(4, LENS),
        channel_major_input,
        traits=frozenset({Trait.CHANNEL_MAJOR}),
    )
    yield Case("convolution/past_unchanged", config(4, LENS), past_unchanged)
    yield Case("convolution/kept_past", config(4, SHORT), kept_past, traits=frozenset({Trait.KEPT_PAST}))


def config(width: int, lens: Sequence[int]) -> str:
    return f"lens {' '.join(map(str, lens))}, channels {CHANNELS}, width {width}, float32"


def compared(subject: Subject, problem: Convolution) -> list[Deviation]:
    out, states = oracle.convolution(problem)
    limit = tolerance.relative([problem.x.dtype])
    buffer = nan_like(problem.x)
    got, got_states = subject.adapter.convolution(problem, backend=subject.backend, out=buffer)
    return [
        deviation("out", buffer, out, limit),
        deviation("final_states", got_states, states, limit),
        holds("out", got.data_ptr() == buffer.data_ptr(), "out given was not the out returned"),
    ]


def prefill_case(
    name: str,
    width: int,
    *,
    past: bool,
    activation: str | None = "silu",
    bias: bool = True,
    lens: tuple[int, ...] = LENS,
) -> Case:
    def check(subject: Subject) -> Sequence[Deviation]:
        problem = subject.draw.convolution(lens, channels=CHANNELS, width=width, initial_states=past)
        problem = replace(problem, activation=activation, bias=problem.bias if bias else None)
        return compared(subject, problem)

    return Case(name, config(width, lens), check, traits=frozenset({Trait.EMPTY_SEQUENCES} if 0 in lens else ()))


def unusual(width: int) -> Callable[[Subject], Sequence[Deviation]]:
    """A width that few models have is computed right or refused by name, never wrong in silence."""

    def check(subject: Subject) -> Sequence[Deviation]:
        problem = subject.draw.convolution(LENS, channels=CHANNELS, width=width, initial_states=True)
        try:
            return compared(subject, problem)
        except ValueError as error:
            return [holds("refusal", "width" in str(error), f"the ValueError does not name the width: {error}")]

    return check


def step_case(
    name: str,
    width: int,
    *,
    dtype: torch.dtype = torch.float32,
    state_dtype: torch.dtype = torch.float32,
    slots: torch.dtype = torch.int32,
) -> Case:
    """Rows of a batch with padding, in slots of a larger pool whose other slots must not change by a bit."""

    def check(subject: Subject) -> Sequence[Deviation]:
        problem = subject.draw.convolution_step(5, channels=CHANNELS, width=width)
        pool, state, indices = in_slots(problem.state.to(state_dtype))
        problem = replace(problem, x=problem.x.to(dtype), state=state, state_indices=indices.to(slots))
        before = pool.clone()
        out, states = oracle.convolution_step(problem)
        got = subject.adapter.convolution_step(problem, backend=subject.backend)
        limit = tolerance.relative([dtype, state_dtype])
        rows = (indices >= 0).cpu()
        return [
            holds("out", got.dtype == dtype, f"out is {got.dtype}, x is {dtype}"),
            deviation("out", got[rows.to(got.device)], out[rows.numpy()], limit),
            *slot_deviations(pool, before, states, indices, limit),
        ]

    dtypes = f"{name_of(dtype)}, state {name_of(state_dtype)}"
    return Case(name, f"rows 5, one of them padding, 9 slots, channels {CHANNELS}, width {width}, {dtypes}", check)


def mostly_padding(subject: Subject) -> Sequence[Deviation]:
    """A batch padded for a captured graph has more rows than there are slots (vLLM 36566)."""
    problem = subject.draw.convolution_step(8, channels=CHANNELS, width=4)
    slots = torch.tensor([2, -1, -1, 0, -1, -1, -1, -1], dtype=torch.int32, device=problem.x.device)
    problem = replace(problem, state=problem.state[:3].clone(), state_indices=slots)
    out, states = oracle.convolution_step(problem)
    got = subject.adapter.convolution_step(problem, backend=subject.backend)
    limit, rows = tolerance.relative([problem.x.dtype]), [0, 3]
    return [deviation("out", got[rows], out[rows], limit), deviation("state", problem.state, states, limit)]


def split_equals_whole(subject: Subject) -> Sequence[Deviation]:
    """Chunked prefill: the final state of one step is the past of the next, even if it is shorter than the width."""
    whole = subject.draw.convolution((30, 17), channels=CHANNELS, width=4, initial_states=False)
    out, states = oracle.convolution(whole)
    got, places, past = nan_like(whole.x), [0, 30], None
    for step in ((10, 1), (1, 2), (19, 14)):
        parts = [(place, place + taken) for place, taken in zip(places, step, strict=True)]
        rows = [token for start, end in parts for token in range(start, end)]
        problem = replace(whole, lens=tuple(step), x=whole.x[rows], initial_states=past)
        part, past = subject.adapter.convolution(problem, backend=subject.backend)
        for (start, end), (first, last) in zip(parts, spans(step), strict=True):
            got[start:end] = part[first:last]
        places = [end for _, end in parts]
    if past is None:
        raise ValueError("a split needs at least one step")
    limit = tolerance.relative([whole.x.dtype])
    return [deviation("out", got, out, limit), deviation("final_states", past, states, limit)]


def strided_input(subject: Subject) -> Sequence[Deviation]:
    """x as a slice of a wider projection, the layout in which a model holds it."""
    problem = subject.draw.convolution(LENS, channels=CHANNELS, width=4, initial_states=True)
    wide = subject.draw.normal(sum(LENS), CHANNELS + 24)
    return compared(subject, replace(problem, x=wide[:, 8 : 8 + CHANNELS]))


def channel_major_input(subject: Subject) -> Sequence[Deviation]:
    """x with tokens next to each other in memory, as a (channels, T) projection leaves it."""
    problem = subject.draw.convolution(LENS, channels=CHANNELS, width=4, initial_states=True)
    return compared(subject, replace(problem, x=problem.x.t().contiguous().t()))


def kept_past(subject: Subject) -> Sequence[Deviation]:
    """A prefix that other requests share is read where it lies; a chunk of one or two tokens too must leave it so
    (vLLM 56196)."""
    return past_unchanged(subject, SHORT, keep_past=True)


def past_unchanged(subject: Subject, lens: tuple[int, ...] = LENS, *, keep_past: bool = False) -> Sequence[Deviation]:
    problem = subject.draw.convolution(lens, channels=CHANNELS, width=4, initial_states=True)
    problem = replace(problem, keep_past=keep_past)
    past = problem.initial_states
    if past is None:
        raise ValueError("this case needs initial states")
    before = past.clone()
    return [*compared(subject, problem), same_bits("initial_states", past, before)]
