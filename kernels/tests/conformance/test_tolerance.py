"""Tolerances come from dtype, length and decay alone."""

import pytest
import torch
from mamba2_conformance import tolerance
from mamba2_conformance.draw import Draw, ScanShape


def test_float32_gets_1e_5_of_the_largest_value_and_16_bits_two_units_in_the_last_place() -> None:
    assert tolerance.relative([torch.float32]) == 1e-5
    assert tolerance.relative([torch.bfloat16]) == 2 * torch.finfo(torch.bfloat16).eps
    assert tolerance.relative([torch.float16]) == 2 * torch.finfo(torch.float16).eps


def test_the_coarsest_dtype_of_a_call_decides() -> None:
    assert tolerance.relative([torch.float32, torch.bfloat16, None]) == tolerance.relative([torch.bfloat16])


def test_a_longer_sequence_gets_more_by_the_square_root() -> None:
    assert tolerance.relative([None], length=512) == 1e-5
    assert tolerance.relative([None], length=2048) == pytest.approx(2e-5)


def test_a_fast_decay_gets_more_in_proportion_to_the_running_sum() -> None:
    gained = tolerance.relative([None], decay=2000.0) - 1e-5
    assert gained == pytest.approx(4 * 2000.0 * 2.0**-24)
    assert 1e-4 < gained < 1e-3


def test_the_decay_of_a_scan_is_the_largest_chunk_s_and_stops_at_the_sequence_s_end() -> None:
    shape = ScanShape((3, 5), chunk_size=4, heads=1)
    problem = Draw("decay", "cpu").scan(shape)
    steps = torch.tensor([9.0, 9.0, 9.0, 1.0, 1.0, 2.0, 3.0, 4.0]).view(8, 1)
    problem = type(problem)(**{**vars(problem), "dt": steps, "A": torch.tensor([-0.5])})
    assert tolerance.chunk_decay(problem) == pytest.approx(13.5)
