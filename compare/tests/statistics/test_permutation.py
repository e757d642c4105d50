import numpy as np
import pytest
from driftline.statistics.permutation import EXACT_UP_TO, one_sided_sign_flip_p, sign_flip_p


def test_three_of_one_sign_are_2_of_8() -> None:
    assert sign_flip_p(np.array([1.0, 2.0, 3.0])) == 0.25


def test_darwins_maize_as_fisher_enumerated_it() -> None:
    # The Design of Experiments, section 21: 1,726 of 32,768 signings are as far from 0 as the sum of 314 eighths of an inch.
    eighths = np.array([49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48.0])
    assert sign_flip_p(eighths) == 1726 / 2**15


def test_enumerated_by_hand() -> None:
    # Sums of ±1 ±2 ±4 that are at least |1 + 2 − 4| = 1 away from 0: all eight.
    assert sign_flip_p(np.array([1.0, 2.0, -4.0])) == 1.0
    # At least |−1 + 2 + 4| = 5 away: ±7 and ±5.
    assert sign_flip_p(np.array([-1.0, 2.0, 4.0])) == 0.5


def test_rounding_does_not_break_ties() -> None:
    assert sign_flip_p(np.array([0.1, 0.2, -0.3])) == 1.0


def test_no_difference_is_no_evidence() -> None:
    assert sign_flip_p(np.zeros(300)) == 1.0
    assert sign_flip_p(np.array([])) == 1.0


def test_questions_without_a_difference_do_not_matter() -> None:
    moved = np.array([0.3, 0.2, -0.1, 0.4, 0.5])
    assert sign_flip_p(np.concatenate([moved, np.zeros(295)])) == sign_flip_p(moved)


def test_one_side_asks_for_means_as_high() -> None:
    # Of the signs of 1, 2 and 3 one gives 6; −6 is the other tail.
    assert one_sided_sign_flip_p(np.array([1.0, 2.0, 3.0])) == 1 / 8
    assert one_sided_sign_flip_p(np.array([-1.0, -2.0, -3.0])) == 1
    assert one_sided_sign_flip_p(np.array([0.1, 0.2, -0.3])) == 5 / 8, "0 itself, and what reaches it, counts"
    assert one_sided_sign_flip_p(np.zeros(5)) == 1
    drop = np.random.default_rng(12).normal(-0.02, 0.05, 300)
    assert (one_sided_sign_flip_p(-drop), one_sided_sign_flip_p(drop)) == (1 / 10_001, 1.0)


def test_drawn_signs_agree_with_all_signs() -> None:
    values = np.random.default_rng(6).normal(0.4, 1, EXACT_UP_TO)
    exact = sign_flip_p(values)
    twice = sign_flip_p(np.concatenate([values, [1e-9]]))
    assert 0.01 < exact < 0.9
    assert twice == pytest.approx(exact, abs=0.015)


def test_same_seed_gives_same_p_and_p_is_never_0() -> None:
    values = np.random.default_rng(7).normal(-0.02, 0.05, 300)
    assert sign_flip_p(values) == sign_flip_p(values) == 1 / 10_001


def test_false_alarms_keep_the_level_on_skewed_but_symmetric_noise() -> None:
    rng = np.random.default_rng(8)
    noise = rng.standard_t(2, size=(1000, 60))
    alarms = np.mean([sign_flip_p(each, draws=400) <= 0.05 for each in noise])
    assert alarms == pytest.approx(0.05, abs=0.02)
