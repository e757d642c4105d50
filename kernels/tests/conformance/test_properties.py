"""The kernels of this work tree keep their properties at random shapes. Derandomised: every run tries the same ones."""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace

os.environ.setdefault("TRITON_INTERPRET", "1")  # read when Triton is first imported

import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from mamba2_conformance import oracle, properties, tolerance
from mamba2_conformance.adapters.protocol import Adapter
from mamba2_conformance.adapters.varlen import load
from mamba2_conformance.case import Subject
from mamba2_conformance.deviation import Deviation, deviation
from mamba2_conformance.draw import Draw, ScanShape
from mamba2_conformance.poison import nan_like, poisoned_memory

torch.set_num_threads(1)

pytestmark = pytest.mark.filterwarnings(
    r"ignore:Conversion of an array with ndim > 0:DeprecationWarning:triton\.runtime\.interpreter"
)
"""Triton 3.6's interpreter turns one-element arrays into loop bounds in a way numpy 2.2 only warns about."""

FEW, MANY = 3, 40
"""Examples for Triton, whose interpreter takes a second for what torch does in a millisecond."""

EXAMPLES = {"torch": MANY, "triton": FEW}


@pytest.fixture(scope="session")
def adapter(kernels_folder: object) -> Adapter:
    return load(kernels_folder)  # type: ignore[arg-type]


@st.composite
def shapes(draw: st.DrawFn) -> ScanShape:
    """Small scans of every kind: empty and one-token sequences, odd sizes, groups, a carried state or none."""
    groups = draw(st.sampled_from([1, 2]))
    options = draw(st.sets(st.sampled_from(["initial_states", "D", "z", "dt_bias"])))
    return ScanShape(
        tuple(draw(st.lists(st.integers(0, 40), min_size=1, max_size=4))),
        draw(st.sampled_from([4, 8, 16, 32])),
        heads=groups * draw(st.sampled_from([1, 3])),
        head_dim=draw(st.sampled_from([8, 16, 20])),
        state_size=draw(st.sampled_from([8, 16, 24])),
        groups=groups,
        options=frozenset(options),
        dt_softplus=draw(st.booleans()),
    )


def quietly(examples: int) -> settings:
    """The same examples in every run, no database on disk, no clock."""
    return settings(
        max_examples=examples, derandomize=True, database=None, deadline=None,
        phases=[Phase.generate, Phase.shrink], suppress_health_check=list(HealthCheck),
    )  # fmt: skip


def subject_of(adapter: Adapter, backend: str, shape: object) -> Subject:
    return Subject(adapter, backend, Draw(str(shape), "cpu"))


def told(deviations: Sequence[Deviation]) -> list[str]:
    return [one.message for one in deviations if not one.passed]


@pytest.mark.parametrize("backend", EXAMPLES)
def test_a_packed_sequence_equals_itself_alone_and_all_is_written(adapter: Adapter, backend: str) -> None:
    @quietly(EXAMPLES[backend])
    @given(shape=shapes())
    def holds(shape: ScanShape) -> None:
        with poisoned_memory():
            assert told(properties.packed_equals_alone(subject_of(adapter, backend, shape), shape)) == []

    holds()


@pytest.mark.parametrize("backend", EXAMPLES)
def test_any_split_equals_the_whole(adapter: Adapter, backend: str) -> None:
    @quietly(EXAMPLES[backend])
    @given(shape=shapes(), data=st.data())
    def holds(shape: ScanShape, data: st.DataObject) -> None:
        taken = [data.draw(st.integers(0, length)) for length in shape.lens]
        with poisoned_memory():
            assert told(properties.split_equals_whole(subject_of(adapter, backend, shape), shape, taken)) == []

    holds()


@pytest.mark.parametrize("backend", EXAMPLES)
def test_permuting_the_sequences_permutes_what_comes_out(adapter: Adapter, backend: str) -> None:
    @quietly(EXAMPLES[backend])
    @given(shape=shapes(), data=st.data())
    def holds(shape: ScanShape, data: st.DataObject) -> None:
        order = data.draw(st.permutations(range(len(shape.lens))))
        with poisoned_memory():
            assert told(properties.permuted_alike(subject_of(adapter, backend, shape), shape, order)) == []

    holds()


@pytest.mark.parametrize("backend", EXAMPLES)
def test_the_same_tile_gives_the_same_bits(adapter: Adapter, backend: str) -> None:
    scans = [(name, tile) for name, tiles in adapter.tiles().items() for tile in tiles if name.startswith("ssd")]

    @quietly(EXAMPLES[backend])
    @given(shape=shapes(), pin=st.sampled_from(scans))
    def holds(shape: ScanShape, pin: tuple[str, object]) -> None:
        with adapter.pinned(*pin) if backend == "triton" else nullcontext():
            assert told(properties.repeated_to_the_bit(subject_of(adapter, backend, shape), shape)) == []

    holds()


ROWS = st.lists(st.integers(-1, 6), min_size=1, max_size=6).filter(
    lambda slots: len({slot for slot in slots if slot >= 0}) == sum(slot >= 0 for slot in slots)
)
"""A slot of seven for each row, none of them twice; -1 is padding, and all may be."""


@pytest.mark.parametrize("backend", EXAMPLES)
def test_a_decode_step_leaves_every_other_slot_alone(adapter: Adapter, backend: str) -> None:
    @quietly(EXAMPLES[backend])
    @given(slots=ROWS)
    def holds(slots: list[int]) -> None:
        subject = subject_of(adapter, backend, slots)
        listed = [slot for slot in slots if slot >= 0]
        step = subject.draw.state_step(7, heads=2)
        rows = {name: getattr(step, name)[: len(slots)] for name in ("x", "dt", "B", "C")}
        step = replace(step, **rows, state_indices=torch.tensor(slots, dtype=torch.int32))
        before, out = step.state.clone(), nan_like(step.x)
        want, states = oracle.state_step(step)
        subject.adapter.state_step(step, backend=backend, out=out)
        limit, asked = tolerance.of_state_step(step), [row for row, slot in enumerate(slots) if slot >= 0]
        found = [
            deviation("out", out[asked], want[asked], limit),
            deviation("state", step.state[listed], states[listed], limit),
            properties.slots_left_alone(step.state, before, listed),
        ]
        assert told(found) == []

    holds()


@pytest.mark.parametrize("backend", EXAMPLES)
def test_a_convolution_step_leaves_every_other_slot_alone(adapter: Adapter, backend: str) -> None:
    @quietly(EXAMPLES[backend])
    @given(slots=ROWS, width=st.sampled_from([2, 3, 4]), channels=st.integers(1, 70))
    def holds(slots: list[int], width: int, channels: int) -> None:
        subject = subject_of(adapter, backend, (slots, width, channels))
        listed = [slot for slot in slots if slot >= 0]
        step = subject.draw.convolution_step(7, channels=channels, width=width)
        step = replace(step, x=step.x[: len(slots)], state_indices=torch.tensor(slots, dtype=torch.int32))
        before = step.state.clone()
        want, states = oracle.convolution_step(step)
        out = subject.adapter.convolution_step(step, backend=backend)
        limit, asked = tolerance.relative([step.x.dtype]), [row for row, slot in enumerate(slots) if slot >= 0]
        found = [
            deviation("out", out[asked], want[asked], limit),
            deviation("state", step.state[listed], states[listed], limit),
            properties.slots_left_alone(step.state, before, listed),
        ]
        assert told(found) == []

    holds()
