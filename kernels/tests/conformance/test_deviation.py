"""What counts as right, and what a wrong output says about itself."""

import numpy as np
import torch
from mamba2_conformance.deviation import Deviation, deviation, holds, same_bits, worst


def test_an_error_within_the_tolerance_of_the_largest_value_passes() -> None:
    got = deviation("out", torch.tensor([100.0, 0.05]), np.array([100.0, 0.0]), 1e-3)
    assert got.passed
    assert got.tolerance == 0.1
    assert got.max_abs_err is not None
    assert abs(got.max_abs_err - 0.05) < 1e-7


def test_an_error_beyond_it_names_place_and_values() -> None:
    got = deviation("out", torch.tensor([[1.0, 2.0], [3.0, 9.0]]), np.array([[1.0, 2.0], [3.0, 4.0]]), 1e-3)
    assert not got.passed
    assert got.max_abs_err == 5.0
    assert got.max_rel_err == 1.25
    assert got.message.startswith("out[1, 1] is 9, expected 4; 1 of 4 values are over 0.004")


def test_one_value_that_is_not_finite_has_no_error_and_fails() -> None:
    got = deviation("out", torch.tensor([1.0, float("nan")]), np.array([1.0, 2.0]), 1e-3)
    assert not got.passed
    assert got.max_abs_err is None
    assert got.message == "out: 1 of 2 values are not finite, first at [1]"


def test_a_wrong_shape_fails_by_name() -> None:
    got = deviation("final_states", torch.zeros(2, 3), np.zeros((3, 2)), 1.0)
    assert got.message == "final_states has shape (2, 3), expected (3, 2)"
    assert not got.passed


def test_an_empty_output_is_right() -> None:
    assert deviation("out", torch.zeros(0, 2), np.zeros((0, 2)), 1e-5).passed


def test_same_bits_sees_a_changed_nan_and_ignores_an_equal_one() -> None:
    before = torch.tensor([float("nan"), 0.0])
    assert same_bits("memory", before.clone(), before).passed
    changed = same_bits("memory", torch.tensor([float("nan"), -0.0]), before)
    assert not changed.passed
    assert changed.max_abs_err == 1.0


def test_the_worst_is_the_furthest_over_its_own_tolerance() -> None:
    near = Deviation("near", 5.0, 1.0, 10.0)
    far = Deviation("far", 0.2, 1.0, 0.1)
    assert worst([near, far]) is far
    assert worst([near, holds("lost", False, "gone"), far]).message == "gone"  # noqa: FBT003
