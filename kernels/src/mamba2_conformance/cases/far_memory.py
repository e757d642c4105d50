"""Addresses beyond 32 bits: few rows that lie far apart, so that a product of 32-bit integers misses them. GPU only.

Each case takes 4 to 9 GB of GPU memory and looks at what a few kilobytes of it hold.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from mamba2_conformance import oracle, tolerance
from mamba2_conformance.case import Case, Subject
from mamba2_conformance.cases import convolution
from mamba2_conformance.cases.scanned import compared
from mamba2_conformance.deviation import Deviation, deviation
from mamba2_conformance.draw import ScanShape
from mamba2_conformance.problem import Scan
from mamba2_conformance.trait import Trait

HALF = torch.bfloat16


@dataclass(frozen=True)
class Distances:
    """tokens and wide: a slice of a projection `wide` elements a row, whose rows times tokens pass 2^31.
    channels_apart: the stride of a token in elements; slots_apart: of a slot."""

    tokens: int = 115_866
    wide: int = 18_560
    conv_tokens: int = 70_000
    channels_apart: int = 32_768
    slots_apart: int = (1 << 30) + 4096


FAR = Distances()

ROWS = (0, 2)
"""Slots of three: the last begins past 2^31 elements."""


def cases() -> Iterator[Case]:
    for name, check, config in (
        ("packing/far_tokens", scan_of_a_slice, f"{FAR.tokens} tokens, rows of {FAR.wide}, chunk 128, bfloat16"),
        ("convolution/far_tokens", convolution_of_a_slice, f"{FAR.conv_tokens} tokens, {FAR.channels_apart} apart"),
        ("convolution/step_far_slots", convolution_in_far_slots, f"3 slots, {FAR.slots_apart} apart, bfloat16"),
        ("state_update/far_slots", update_in_far_slots, f"3 slots, {FAR.slots_apart} apart, bfloat16"),
    ):
        traits = frozenset({Trait.CONVOLUTION} if name.startswith("convolution") else ())
        yield Case(name, config, check, backends=frozenset({"triton"}), traits=traits, needs_gpu=True)


def scan_of_a_slice(subject: Subject) -> Sequence[Deviation]:
    """mamba 988: chunk times chunk_size times the stride of a wide projection, as a 32-bit product."""
    shape = ScanShape((FAR.tokens,), 128, heads=1, dtype=HALF)
    wide = torch.zeros(FAR.tokens, FAR.wide, dtype=HALF, device=subject.draw.device)
    plain: Scan = subject.draw.scan(shape)
    width = shape.head_dim
    wide[:, -width:] = plain.x[:, 0]
    return compared(subject, replace(plain, x=wide[:, -width:].unflatten(1, (1, width))))


def convolution_of_a_slice(subject: Subject) -> Sequence[Deviation]:
    """vLLM 41617: token times the stride of a token, as a 32-bit product."""
    wide = torch.zeros(FAR.conv_tokens, FAR.channels_apart, dtype=HALF, device=subject.draw.device)
    lens = (FAR.conv_tokens - 5, 5)
    plain = subject.draw.convolution(lens, channels=8, width=4, initial_states=False)
    wide[:, :8] = plain.x
    half = {"weight": plain.weight.to(HALF), "bias": None if plain.bias is None else plain.bias.to(HALF)}
    return convolution.compared(subject, replace(plain, x=wide[:, :8], **half))


def convolution_in_far_slots(subject: Subject) -> Sequence[Deviation]:
    """vLLM 20938: slot times the stride of a slot, as a 32-bit product."""
    step = subject.draw.convolution_step(2, channels=8, width=4)
    step = replace(step, x=step.x.to(HALF), state=far_slots(step.state.to(HALF)), state_indices=listed(subject))
    out, states = oracle.convolution_step(step)
    got = subject.adapter.convolution_step(step, backend=subject.backend)
    limit = tolerance.relative([HALF])
    return [deviation("out", got, out, limit), deviation("state", step.state[list(ROWS)], states[list(ROWS)], limit)]


def update_in_far_slots(subject: Subject) -> Sequence[Deviation]:
    """The same for the decode step's states."""
    step = subject.draw.state_step(2, heads=1)
    step = replace(step, state=far_slots(step.state.to(HALF)), state_indices=listed(subject))
    out, states = oracle.state_step(step)
    got = subject.adapter.state_step(step, backend=subject.backend)
    limit = tolerance.of_state_step(step)
    return [deviation("out", got, out, limit), deviation("state", step.state[list(ROWS)], states[list(ROWS)], limit)]


def far_slots(rows: torch.Tensor) -> torch.Tensor:
    """Three slots of which the first and the last hold `rows`, each `slots_apart` elements from the next."""
    memory = torch.zeros(2 * FAR.slots_apart + rows[0].numel(), dtype=rows.dtype, device=rows.device)
    slots = memory.as_strided((3, *rows.shape[1:]), (FAR.slots_apart, *rows[:1].stride()[1:]))
    slots[list(ROWS)] = rows
    return slots


def listed(subject: Subject) -> torch.Tensor:
    return torch.tensor(ROWS, dtype=torch.int32, device=subject.draw.device)
