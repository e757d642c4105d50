"""The oracle against results worked out by hand, so that nothing of ours judges itself."""

import math

import numpy as np
import pytest
import torch
from mamba2_conformance import oracle
from mamba2_conformance.problem import Convolution, ConvolutionStep, GatedNorm, Scan, StateStep

LN2 = math.log(2.0)


def row(*values: float) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def halving_scan(**changes: object) -> Scan:
    """One head of one value and one state value whose decay is 1/2 a token: h = h/2 + x, y = h."""
    x = row(4.0, 2.0, 1.0).view(3, 1, 1)
    ones = torch.ones(3, 1, 1, dtype=torch.float64)
    problem = {"lens": (3,), "chunk_size": 2, "x": x, "dt": ones[..., 0], "A": row(-LN2), "B": ones, "C": ones}
    return Scan(**{**problem, **changes})  # type: ignore[arg-type]


def test_a_scan_halves_its_state_at_every_token() -> None:
    got = oracle.scan(halving_scan(), after=(1, 3))
    assert got.out.ravel() == pytest.approx([4.0, 4.0, 3.0])
    assert got.final_states.ravel() == pytest.approx([3.0])
    assert got.states_after.ravel() == pytest.approx([4.0, 3.0])


def test_a_carried_state_decays_from_the_sequence_s_first_token() -> None:
    got = oracle.scan(halving_scan(initial_states=row(16.0).view(1, 1, 1, 1)))
    assert got.out.ravel() == pytest.approx([12.0, 8.0, 5.0])
    assert got.final_states.ravel() == pytest.approx([5.0])


def test_sequences_do_not_see_each_other_and_an_empty_one_keeps_its_state() -> None:
    got = oracle.scan(halving_scan(lens=(1, 0, 2), initial_states=row(0.0, 7.0, 2.0).view(3, 1, 1, 1)))
    assert got.out.ravel() == pytest.approx([4.0, 3.0, 2.5])
    assert got.final_states.ravel() == pytest.approx([4.0, 7.0, 2.5])


def test_dt_scales_the_inflow_and_d_adds_the_input() -> None:
    got = oracle.scan(halving_scan(dt=row(2.0, 1.0, 1.0).view(3, 1), D=row(10.0)))
    assert got.out.ravel() == pytest.approx([8.0 + 40.0, 6.0 + 20.0, 4.0 + 10.0])


def test_z_gates_what_comes_out() -> None:
    got = oracle.scan(halving_scan(z=row(0.0, 1000.0, -1000.0).view(3, 1, 1)))
    assert got.out.ravel() == pytest.approx([0.0, 4000.0, 0.0])


def test_heads_share_their_group_s_b_and_c() -> None:
    assert oracle.per_head(np.arange(2.0).reshape(1, 2, 1), 4).ravel().tolist() == [0.0, 0.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("dt", "step"),
    [(0.0, LN2), (-100.0, 0.0), (19.9, 19.9), (20.0, 20.0), (20.1, 20.1), (100.0, 100.0), (-20.0, 2.0611536e-9)],
)
def test_softplus_at_its_edges(dt: float, step: float) -> None:
    problem = halving_scan(dt_softplus=True)
    assert oracle.time_steps(np.array([[dt]]), problem).item() == pytest.approx(step, abs=3e-9)


def test_the_bias_goes_in_before_softplus_and_the_limits_come_last() -> None:
    problem = halving_scan(dt_bias=row(3.0), dt_softplus=True, dt_limit=(0.5, 2.0))
    assert oracle.time_steps(np.array([[-3.0], [4.0], [-9.0]]), problem).ravel() == pytest.approx([LN2, 2.0, 0.5])


def test_a_convolution_weighs_the_newest_input_last() -> None:
    problem = Convolution((2, 1), row(1.0, 2.0, 5.0).view(3, 1), row(100.0, 10.0, 1.0).view(1, 3), row(0.5))
    out, states = oracle.convolution(problem)
    assert out.ravel() == pytest.approx([1.5, 12.5, 5.5])
    assert states.tolist() == [[[1.0, 2.0]], [[0.0, 5.0]]]


def test_a_convolution_s_past_is_oldest_first_and_outlives_a_short_sequence() -> None:
    past = row(7.0, 8.0, 0.0, 9.0).view(2, 1, 2)
    problem = Convolution((1, 0), row(1.0).view(1, 1), row(100.0, 10.0, 1.0).view(1, 3), initial_states=past)
    out, states = oracle.convolution(problem)
    assert out.ravel() == pytest.approx([781.0])
    assert states.tolist() == [[[8.0, 1.0]], [[0.0, 9.0]]]


def test_a_convolution_step_shifts_its_own_slot_only() -> None:
    state = row(1.0, 2.0, 3.0, 4.0).view(2, 1, 2)
    indices = torch.tensor([1, -1])
    problem = ConvolutionStep(row(5.0, 6.0).view(2, 1), state, row(100.0, 10.0, 1.0).view(1, 3), state_indices=indices)
    out, states = oracle.convolution_step(problem)
    assert out[0].item() == pytest.approx(345.0)
    assert np.isnan(out[1]).all()
    assert states.tolist() == [[[1.0, 2.0]], [[4.0, 5.0]]]
    assert state.ravel().tolist() == [1.0, 2.0, 3.0, 4.0]


def test_a_state_step_is_one_token_of_the_recurrence() -> None:
    ones = torch.ones(1, 1, 1, dtype=torch.float64)
    state = row(3.0, 16.0).view(2, 1, 1, 1)
    step = StateStep(state, 4.0 * ones, ones[..., 0], row(-LN2), ones, 2.0 * ones, state_indices=torch.tensor([1]))
    out, states = oracle.state_step(step)
    assert out.item() == pytest.approx(24.0)
    assert states.ravel() == pytest.approx([3.0, 12.0])


@pytest.mark.parametrize(
    ("before", "want"), [(False, [0.0, math.sqrt(2.0)]), (True, [0.0, 4.0 / math.sqrt(12.5) * 1000.0])]
)
def test_a_gate_goes_in_before_the_norm_or_after_it(before: bool, want: list[float]) -> None:
    norm = GatedNorm(
        row(3.0, 4.0).view(1, 2), torch.ones(2), row(0.0, 1000.0).view(1, 2), eps=0.0, norm_before_gate=before
    )
    assert oracle.gated_norm(norm).ravel() == pytest.approx(want)


def test_each_group_is_normed_by_itself() -> None:
    norm = GatedNorm(row(3.0, 3.0, 50.0, 50.0).view(1, 4), row(1.0, 2.0, 1.0, 1.0), eps=0.0, group_size=2)
    assert oracle.gated_norm(norm).ravel() == pytest.approx([1.0, 2.0, 1.0, 1.0])
