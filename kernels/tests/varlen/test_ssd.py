"""The scan: each backend against the float64 recurrence, and against itself cut in other ways."""

from collections.abc import Callable

import mamba2_varlen as m2
import pytest
import torch
from torch import Tensor

LENGTHS = [(63,), (1,), (100, 1, 37), (5, 0, 7), (0, 0), (1, 1, 1), (64, 32), (20, 80, 3, 64)]


@pytest.mark.parametrize("lengths", LENGTHS, ids=str)
@pytest.mark.parametrize("initial", [True, False], ids=["carried", "fresh"])
def test_equals_reference(backend, scan_case, assert_close, lengths, initial) -> None:
    case = scan_case(lengths, initial=initial)
    expected = case.run("reference", return_intermediate_states=True)
    actual = case.run(backend, return_intermediate_states=True)
    for ours, reference in zip(actual, expected, strict=True):
        assert_close(ours, reference)


@pytest.mark.parametrize("lengths", [(138, 225), (40, 100, 37), (10, 118), (70, 58, 128)], ids=str)
def test_carried_states_in_large_chunks(backend, scan_case, assert_close, lengths) -> None:
    case = scan_case(lengths, sizes=(2, 8, 1, 16))
    expected, actual = (case.run(name, chunk_size=128) for name in ("reference", backend))
    assert_close(actual.out, expected.out)
    assert_close(actual.final_states, expected.final_states)


def test_every_option_together(backend, scan_case, random_tensor, assert_close) -> None:
    case = scan_case((33, 70))
    options = {
        "D": random_tensor(4, 8),
        "z": random_tensor(103, 4, 8),
        "dt_bias": random_tensor(4),
        "dt_softplus": True,
        "dt_limit": (0.3, 1.5),
    }
    assert_close(case.run(backend, **options).out, case.run("reference", **options).out)
    options["D"] = random_tensor(4)
    assert_close(case.run(backend, **options).out, case.run("reference", **options).out)


def test_softplus_is_linear_above_20_and_kept_below(backend, scan_case, assert_close) -> None:
    case = scan_case((8,), sizes=(1, 8, 1, 8))
    x, _, A, B, C = case.tensors
    dt = torch.tensor([-100.0, -20.0, 0.0, 19.9, 20.0, 20.1, 100.0, -5.0], device=x.device)[:, None]
    case = type(case)(case.lengths, (x, dt, A, B, C), case.options)
    for limit in ((0.0, float("inf")), (0.0, 21.0)):
        options = {"dt_softplus": True, "dt_limit": limit}
        assert_close(case.run(backend, **options).out, case.run("reference", **options).out)


@pytest.mark.parametrize("groups", [1, 2, 4])
@pytest.mark.parametrize("sizes", [(5, 5), (24, 40)], ids=["tiny", "odd"])
def test_groups_and_odd_sizes(backend, scan_case, assert_close, groups, sizes) -> None:
    case = scan_case((50, 21), sizes=(4, sizes[0], groups, sizes[1]))
    expected, actual = (case.run(name, chunk_size=16) for name in ("reference", backend))
    assert_close(actual.out, expected.out)
    assert_close(actual.final_states, expected.final_states)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("state_dtype", [None, torch.bfloat16])
def test_sixteen_bit_inputs_and_states(backend, scan_case, assert_close, dtype, state_dtype) -> None:
    case = scan_case((40, 17), dtype=dtype)
    expected, actual = (case.run(name, state_dtype=state_dtype) for name in ("reference", backend))
    assert actual.final_states.dtype == (state_dtype or torch.float32)
    assert_close(actual.out, expected.out, dtype)
    assert_close(actual.final_states, expected.final_states, torch.bfloat16)


def test_float64_stays_float64(scan_case, assert_close) -> None:
    case = scan_case((63, 40), dtype=torch.float64)
    expected, actual = (case.run(name) for name in ("reference", "torch"))
    assert actual.final_states.dtype == torch.float64
    assert_close(actual.out, expected.out, torch.float64)


def test_packed_equals_alone(backend, scan_case, assert_close) -> None:
    case = scan_case((40, 0, 100, 37))
    packed, start = case.run(backend), 0
    for index, length in enumerate(case.lengths):
        x, dt, A, B, C = case.tensors
        own = slice(start, start + length)
        options = {"initial_states": case.options["initial_states"][index : index + 1]}
        alone = type(case)((length,), (x[own], dt[own], A, B[own], C[own]), options).run(backend)
        assert_close(packed.out[own], alone.out)
        assert_close(packed.final_states[index : index + 1], alone.final_states)
        start += length


def test_a_nan_stays_in_its_own_sequence(backend, scan_case, assert_close) -> None:
    case = scan_case((40, 20, 37))
    clean = case.run("reference")
    case.tensors[0][40:60] = torch.nan
    actual = case.run(backend)
    assert_close(torch.cat([actual.out[:40], actual.out[60:]]), torch.cat([clean.out[:40], clean.out[60:]]))
    assert_close(actual.final_states[[0, 2]], clean.final_states[[0, 2]])


@pytest.mark.parametrize("split", [1, 32, 45])
def test_two_calls_with_carried_state_equal_one(backend, scan_case, assert_close, split) -> None:
    case = scan_case((77,))
    x, dt, A, B, C = case.tensors
    whole = case.run(backend)
    first = type(case)((split,), (x[:split], dt[:split], A, B[:split], C[:split]), case.options).run(backend)
    rest = (x[split:], dt[split:], A, B[split:], C[split:])
    second = type(case)((77 - split,), rest, {"initial_states": first.final_states}).run(backend)
    assert_close(torch.cat([first.out, second.out]), whole.out)
    assert_close(second.final_states, whole.final_states)


def test_every_chunk_size_gives_the_same(backend, scan_case, assert_close) -> None:
    case = scan_case((90, 41), sizes=(2, 8, 1, 8))
    expected = case.run("reference")
    for chunk_size in (2, 8, 64, 256):
        actual = case.run(backend, chunk_size=chunk_size)
        assert_close(actual.out, expected.out)
        assert_close(actual.final_states, expected.final_states)


def test_strided_inputs(backend, scan_case, assert_close) -> None:
    case = scan_case((30, 11))
    strided = tuple(t if t.dim() == 1 else t.movedim(0, -1).contiguous().movedim(-1, 0) for t in case.tensors)
    assert strided[0].stride(0) == 1
    assert_close(type(case)(case.lengths, strided, case.options).run(backend).out, case.run("reference").out)


def test_huge_decay_stays_finite(backend, scan_case) -> None:
    case = scan_case((200,), sizes=(2, 8, 1, 8))
    x, dt, _, B, C = case.tensors
    A = torch.full((2,), -1e6, device=x.device)
    result = type(case)(case.lengths, (x, dt * 20, A, B, C), case.options).run(backend, chunk_size=256)
    assert torch.isfinite(result.out).all()
    assert torch.isfinite(result.final_states).all()


STEEP_DECAYS = {
    "one head": (-0.05, -400.0, -0.1, -0.02), "most heads": (-30.0, -400.0, -0.1, -1e4),
    "at the edge": (-4.5, -5.0, -5.5, -6.0), "over many pieces": (-3.0, -2.0, -1.0, -0.5),
}  # fmt: skip
"""A of four heads: in a piece of 64 rows, with steps of 0.17 in the mean, e^-60 lies near -5.5."""


@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("decays", STEEP_DECAYS.values(), ids=STEEP_DECAYS)
def test_heads_that_decay_at_very_different_rates(backend, scan_case, assert_close, decays, groups) -> None:
    case = scan_case((200, 64, 3, 130), sizes=(4, 8, groups, 16))
    x, dt, _, B, C = case.tensors
    case = type(case)(case.lengths, (x, dt, torch.tensor(decays, device=x.device), B, C), case.options)
    expected, actual = (
        case.run(name, chunk_size=64, return_intermediate_states=True) for name in ("reference", backend)
    )
    for ours, reference in zip(actual, expected, strict=True):
        for head in range(4):  # each by its own largest value: a steep head's are small beside a gentle one's
            assert_close(ours.select(1, head), reference.select(1, head))


def test_inputs_are_left_alone(backend, scan_case) -> None:
    case = scan_case((40, 9))
    before = [tensor.clone() for tensor in (*case.tensors, case.options["initial_states"])]
    case.run(backend)
    after = (*case.tensors, case.options["initial_states"])
    assert all(torch.equal(old, new) for old, new in zip(before, after, strict=True))


def test_reference_is_the_recurrence_by_hand() -> None:
    # One head, one channel, one state: s1 = 2*3*5 = 30, s2 = 0.5*30 + 1*1*1 = 16 with exp(A) = 0.5 and dt = 1.
    x, dt = torch.tensor([2.0, 1.0]).view(2, 1, 1), torch.tensor([[3.0], [1.0]])
    B, C = torch.tensor([5.0, 1.0]).view(2, 1, 1), torch.tensor([1.0, 10.0]).view(2, 1, 1)
    A = torch.tensor([0.5]).log()
    metadata = m2.build_metadata([0, 2], chunk_size=1)
    result = m2.ssd_prefill(x, dt, A, B, C, metadata=metadata, return_intermediate_states=True, backend="reference")
    assert result.out.flatten().tolist() == pytest.approx([30.0, 160.0])
    assert result.final_states.item() == pytest.approx(16.0)
    assert result.intermediate_states is not None
    assert result.intermediate_states.flatten().tolist() == pytest.approx([30.0, 16.0])


def test_many_short_sequences_of_mixed_length(
    scan_case: Callable[..., object], assert_close: Callable[[Tensor, Tensor], None]
) -> None:
    lengths = (64, 3, 0, 130, 64, 1, 200, 64, 65, 2)
    case = scan_case(lengths, sizes=(2, 4, 1, 8))
    expected, actual = (case.run(name, chunk_size=256) for name in ("reference", "torch"))
    assert_close(actual.out, expected.out)
    assert_close(actual.final_states, expected.final_states)
