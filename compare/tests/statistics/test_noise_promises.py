"""Reduced simulations of what noise floor and confirmation promise; benchmarks/statistics_noise.py is full-size."""

from collections.abc import Callable
from types import ModuleType

import numpy as np
import pytest

RUNS = 300


@pytest.fixture(scope="module")
def noise(benchmark_module: Callable[[str], ModuleType]) -> ModuleType:
    return benchmark_module("statistics_noise")


@pytest.mark.parametrize("pairs", [1, 4])
def test_a_quiet_lane_has_its_flip_rate_covered_and_is_left_in_peace(noise: ModuleType, pairs: int) -> None:
    rng = np.random.default_rng(pairs)
    covered, unstable, beyond = np.mean([noise.quiet_lane(rng, pairs) for _ in range(RUNS)], axis=0)
    # 300 lanes have a standard error of 1.7 % at 90 %, and of 0.6 % at 1 %.
    assert covered >= 0.9 - 2 * 0.017
    assert unstable <= 0.01 + 2 * 0.006
    assert beyond <= 0.01 + 2 * 0.006


def test_a_lane_that_moves_by_five_points_is_unstable(noise: ModuleType) -> None:
    rng = np.random.default_rng(5)
    assert np.mean([noise.moving_lane(rng, 0.05) for _ in range(100)]) >= 0.95


def test_a_fresh_pair_agrees_with_one_false_alarm_in_twenty_and_with_most_true_drops(noise: ModuleType) -> None:
    rng = np.random.default_rng(6)
    false, true = (np.mean([noise.fresh_pair_agrees(rng, drop) for _ in range(150)]) for drop in (0.0, 0.03))
    # 150 pairs have a standard error of 1.8 % at 5 %.
    assert false <= 0.05 + 2 * 0.018
    assert true >= 0.95
