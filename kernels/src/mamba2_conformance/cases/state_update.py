"""The decode step: one token for each row, state advanced in place in its slot, every other slot left alone."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch

from mamba2_conformance import oracle, tolerance
from mamba2_conformance.case import Case, Subject
from mamba2_conformance.cases.option import SOFTPLUS_EDGES
from mamba2_conformance.cases.slots import in_slots, slot_deviations
from mamba2_conformance.deviation import Deviation, deviation
from mamba2_conformance.draw import Draw
from mamba2_conformance.poison import nan_like
from mamba2_conformance.problem import StateStep
from mamba2_conformance.trait import Trait

ROWS, HEADS, HEAD_DIM = 3, 2, 16

STEPS = 8
"""Enough for an error of each step to pile up, few enough for an interpreter."""

SIZE = f"heads {HEADS} x {HEAD_DIM}, state 16"

Change = Callable[[Draw, StateStep], StateStep]


def cases() -> Iterator[Case]:
    yield Case("state_update/slots", f"rows 5, one of them padding, 9 slots, {SIZE}", in_a_pool)
    for name, (groups, change) in CHANGES.items():
        yield plain_case(f"state_update/{name}", groups, change)
    yield Case("state_update/int64_slots", f"rows 5, one of them padding, 9 slots, {SIZE}", in_a_pool_by_int64)
    yield Case("state_update/more_rows_than_slots", f"rows 8, 6 of them padding, 3 slots, {SIZE}", mostly_padding)
    yield Case("state_update/many_steps", f"rows 2, {STEPS} steps, {SIZE}", many_steps)


CHANGES: dict[str, tuple[int, Change]] = {
    "plain": (1, lambda draw, step: step),
    "groups": (2, lambda draw, step: step),
    "D": (1, lambda draw, step: replace(step, D=draw.normal(HEADS))),
    "D_full": (1, lambda draw, step: replace(step, D=draw.normal(HEADS, HEAD_DIM))),
    "z": (1, lambda draw, step: replace(step, z=draw.normal(*step.x.shape))),
    "softplus": (1, lambda draw, step: replace(step, dt_bias=draw.normal(HEADS), dt_softplus=True)),
    "softplus_edges": (1, lambda draw, step: at_softplus_edges(step)),
    "dt_limit": (1, lambda draw, step: replace(step, dt_limit=(0.3, 0.6))),
    "bfloat16": (1, lambda draw, step: in_dtype(step, torch.bfloat16, torch.bfloat16)),
    "bfloat16_state": (1, lambda draw, step: in_dtype(step, torch.float32, torch.bfloat16)),
}


def plain_case(name: str, groups: int, change: Change) -> Case:
    """Row i in slot i, with one thing changed."""

    def check(subject: Subject) -> Sequence[Deviation]:
        step = change(subject.draw, subject.draw.state_step(ROWS, heads=HEADS * groups, groups=groups))
        return stepped(subject, step)

    traits = frozenset({Trait.STEP_LIMIT} if name.endswith("dt_limit") else ())
    return Case(
        name, f"rows {ROWS}, heads {HEADS * groups} x {HEAD_DIM}, state 16, groups {groups}", check, traits=traits
    )


def stepped(subject: Subject, step: StateStep) -> list[Deviation]:
    out, states = oracle.state_step(step)
    limit, buffer = tolerance.of_state_step(step), nan_like(step.x)
    subject.adapter.state_step(step, backend=subject.backend, out=buffer)
    return [deviation("out", buffer, out, limit), deviation("state", step.state, states, limit)]


def in_a_pool(subject: Subject, dtype: torch.dtype = torch.int32) -> Sequence[Deviation]:
    step = subject.draw.state_step(5, heads=HEADS)
    memory, pool, indices = in_slots(step.state)
    step = replace(step, state=pool, state_indices=indices.to(dtype))
    before = memory.clone()
    out, states = oracle.state_step(step)
    limit = tolerance.of_state_step(step)
    got = subject.adapter.state_step(step, backend=subject.backend)
    rows = (indices >= 0).cpu()
    return [
        deviation("out", got[rows.to(got.device)], out[rows.numpy()], limit),
        *slot_deviations(memory, before, states, indices, limit),
    ]


def in_a_pool_by_int64(subject: Subject) -> Sequence[Deviation]:
    """Schedulers hand over slot numbers of either width (vLLM 50327)."""
    return in_a_pool(subject, torch.int64)


def mostly_padding(subject: Subject) -> Sequence[Deviation]:
    """A batch padded for a captured graph has more rows than there are slots (vLLM 36566)."""
    step = subject.draw.state_step(8, heads=HEADS)
    slots = torch.tensor([2, -1, -1, 0, -1, -1, -1, -1], dtype=torch.int32, device=step.x.device)
    step = replace(step, state=step.state[:3].clone(), state_indices=slots)
    out, states = oracle.state_step(step)
    got = subject.adapter.state_step(step, backend=subject.backend)
    limit, rows = tolerance.of_state_step(step), [0, 3]
    return [deviation("out", got[rows], out[rows], limit), deviation("state", step.state, states, limit)]


def many_steps(subject: Subject) -> Sequence[Deviation]:
    """Errors must not pile up: every step against the oracle's own state, not against a restarted one."""
    step = subject.draw.state_step(2, heads=HEADS)
    theirs = replace(step, state=step.state.double().cpu())
    deviations: list[Deviation] = []
    for count in range(STEPS):
        fresh = subject.draw.state_step(2, heads=HEADS)
        step = replace(fresh, state=step.state, A=step.A)
        out, states = oracle.state_step(replace(step, state=theirs.state))
        theirs = replace(theirs, state=torch.from_numpy(states))
        limit = tolerance.of_state_step(step)
        got = subject.adapter.state_step(step, backend=subject.backend)
        deviations += [deviation(f"step {count} out", got, out, limit)]
    return [*deviations, deviation("state", step.state, theirs.state.numpy(), limit)]


def at_softplus_edges(step: StateStep) -> StateStep:
    """One edge for each row and head; A is small, so that a step of 100 does not wipe the state out."""
    edges = torch.tensor(SOFTPLUS_EDGES, device=step.dt.device)[: step.dt.numel()]
    return replace(step, dt=edges.view_as(step.dt), dt_softplus=True, A=step.A * 0.01)


def in_dtype(step: StateStep, dtype: torch.dtype, state_dtype: torch.dtype) -> StateStep:
    return replace(step, x=step.x.to(dtype), B=step.B.to(dtype), C=step.C.to(dtype), state=step.state.to(state_dtype))
