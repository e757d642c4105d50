"""Cases for a GPU: which there are, and that each asks what it says, tried at small sizes on the torch backend.

The marked test puts all of them to the Triton kernels at full size: `make test-gpu`.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from mamba2_conformance import runner
from mamba2_conformance.adapters.protocol import Adapter
from mamba2_conformance.adapters.varlen import load
from mamba2_conformance.case import Case
from mamba2_conformance.cases import catalogue, far_memory, on_a_gpu
from mamba2_conformance.cases.far_memory import Distances
from mamba2_conformance.cases.on_a_gpu import Sizes

ONE_EACH = (
    "packing/far_tokens",
    "convolution/far_tokens",
    "convolution/step_far_slots",
    "state_update/far_slots",
    "carried_state/steep_decay",
    "convolution/step_large_grid",
    "convolution/step_racing_shift",
    "state_update/large_grid",
    "state_update/long_answer_float32",
    "state_update/long_answer_float16",
    "state_update/long_answer_bfloat16",
    "packing/model_255_chunk_64_float32",
    "carried_state/model_17x3_chunk_256_bfloat16",
    "carried_state/random_2_packed",
    "packing/random_1_permuted",
    "packing/random_1_repeated",
    "carried_state/random_2_split",
)


@pytest.fixture(scope="session")
def adapter(kernels_folder: Path) -> Adapter:
    return load(kernels_folder)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sizes that a CPU computes in a moment, with the same proportions."""
    distances = Distances(tokens=300, wide=60, conv_tokens=90, channels_apart=64, slots_apart=4096)
    monkeypatch.setattr(far_memory, "FAR", distances)
    monkeypatch.setattr(on_a_gpu, "FULL", Sizes(rows=70, steps=40, racing=9, long=64))


def gpu_cases(adapter: Adapter) -> Iterator[Case]:
    return (case for case in catalogue.cases_for(adapter, "triton") if case.needs_gpu)


@pytest.mark.parametrize("name", ONE_EACH)
def test_each_asks_what_it_says(adapter: Adapter, small: None, name: str) -> None:
    [case] = [case for case in gpu_cases(adapter) if case.name == name]
    outcome = runner.outcome_of(case, adapter, "torch")
    assert outcome.passed, outcome.message
    assert outcome.max_abs_err is not None


def test_a_cpu_is_asked_none_of_them_and_a_gpu_all(adapter: Adapter) -> None:
    on_cpu = {case.name for case, _ in runner.plan(adapter, ["torch", "triton"], "cpu")}
    on_gpu = runner.plan(adapter, ["torch", "triton"], "cuda")
    names = {case.name for case in gpu_cases(adapter)}
    assert not on_cpu & names
    assert names <= {case.name for case, _ in on_gpu}
    assert set(ONE_EACH) <= names
    assert len(on_gpu) >= 600
    assert len({(case.name, backend) for case, backend in on_gpu}) == len(on_gpu)


def test_far_memory_is_beyond_32_bits_at_full_size() -> None:
    far = Distances()
    assert (far.tokens - 1) * far.wide > 2**31
    assert (far.conv_tokens - 1) * far.channels_apart > 2**31
    assert 2 * far.slots_apart > 2**31


@pytest.mark.gpu
def test_all_of_them_pass_on_this_machine_s_gpu(adapter: Adapter) -> None:
    assert torch.cuda.is_available(), "this machine has no CUDA GPU; run this test on one"
    outcomes = [runner.outcome_of(case, adapter, "triton", device="cuda") for case in gpu_cases(adapter)]
    assert [(one.name, one.message) for one in outcomes if not one.passed and one.kind == "contract"] == []
