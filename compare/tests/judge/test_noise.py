"""The noise floor with its intervals, and the rule for an unstable lane."""

import numpy as np
import pytest
from driftline.judge.noise import differs_from_itself, noise_floor
from driftline.statistics.proportion import clustered_share, exact_share


def flipped(build, *questions):
    """Right and wrong swapped on some questions."""
    return build.evaluation([right != (index in questions) for index, right in enumerate(build.answers())])


def test_an_unmeasured_floor_is_not_a_floor_of_0():
    with pytest.raises(ValueError, match="at least one pair"):
        noise_floor([])


def test_one_pair_has_clopper_and_pearsons_intervals(build):
    first, second = flipped(build), flipped(build, 1, 2, 4, 5)
    floor = noise_floor([(first, second)])
    assert (floor.pairs, floor.questions, floor.flips, floor.text_diverged) == (1, 300, 4, 4)
    assert floor.flip_interval == pytest.approx(exact_share(4, 300, level=0.9), rel=1e-2)
    assert floor.text_interval == floor.flip_interval
    assert (floor.moved_questions, floor.moved_interval) == (0, pytest.approx((0, 1 - 0.05 ** (1 / 300))))
    assert floor.first_words.median == 0, "'18.' against '17.'"
    assert floor.first_tokens is None
    assert not floor.bit_identical
    assert not floor.unstable


def test_a_question_that_flips_in_every_pair_is_one_question(build):
    quiet, loud = flipped(build), flipped(build, 1, 2, 4)
    floor = noise_floor([(quiet, loud), (loud, quiet), (quiet, loud)])
    assert (floor.questions, floor.flips) == (900, 9)
    hits = np.repeat(np.array([3, 0]), (3, 297))
    assert floor.flip_interval == pytest.approx(clustered_share(hits, np.full(300, 3), level=0.9))
    assert floor.flip_interval == pytest.approx(exact_share(3, 300, level=0.9), rel=0.02)


def test_bit_identical_pairs_leave_no_more_than_the_closed_form(build):
    same = flipped(build)
    floor = noise_floor([(same, same), (same, same)])
    assert (floor.bit_identical, floor.flips, floor.unstable) == (True, 0, False)
    assert floor.flip_interval == pytest.approx((0, 1 - 0.05 ** (1 / 300)))


def test_moved_tokens_are_counted_and_placed(build):
    moved = np.zeros(300)
    moved[:30] = 0.01
    floor = noise_floor([(flipped(build), build.evaluation(build.answers(), moved=moved))])
    assert (floor.moved_questions, floor.forced_questions, floor.text_diverged) == (30, 300, 0)
    assert floor.first_tokens.highest == 0
    assert floor.moved_interval == pytest.approx(exact_share(30, 300, level=0.9), rel=0.02)


@pytest.mark.parametrize(
    ("counts", "unstable"),
    [
        ([(0, 0)], False),
        ([(9, 0)], False),  # p = 0.0039: once below 1 %, but pooled not below 0.1 %
        ([(11, 0)], True),  # p = 0.00098
        ([(9, 0), (0, 9)], True),  # two in a row
        ([(9, 0), (3, 3), (0, 9)], False),  # two, but not in a row
        ([(3, 3)] * 20, False),
        ([(4, 1)] * 6, False),  # 24 against 6, p = 0.0014
        ([(4, 1)] * 7, True),  # 28 against 7, p = 0.0005
    ],
)
def test_the_rule_for_unstable(counts, unstable):
    assert differs_from_itself(counts) == unstable
