from fractions import Fraction
from math import comb

import numpy as np
import pytest
from driftline.statistics.binomial import at_least, at_most, least_significant, mass
from driftline.statistics.mcnemar import one_sided_p


def exact(k: int, n: int, chance: Fraction) -> float:
    """P of at most k of n, in whole numbers."""
    return float(sum(comb(n, j) * chance**j * (1 - chance) ** (n - j) for j in range(k + 1)))


@pytest.mark.parametrize(("k", "n"), [(0, 1), (1, 1), (0, 300), (7, 21), (25, 300), (299, 300), (300, 300)])
def test_a_tail_is_the_sum_of_whole_numbers(k: int, n: int) -> None:
    chances = [Fraction(each, 20) for each in range(21)]
    found = at_most(k, n, np.array([float(each) for each in chances]))
    assert found == pytest.approx([exact(k, n, each) for each in chances], abs=1e-12)


def test_a_tail_of_the_full_set_is_the_published_one() -> None:
    # Clopper and Pearson's upper limit for 81 of 263 at 95 %, Newcombe 1998: 0.3676.
    assert at_most(81, 263, 0.3676)[0] == pytest.approx(0.025, abs=2e-4)


def test_masses_sum_to_one_and_certain_outcomes_have_all_of_it() -> None:
    assert mass(1319, 0.06).sum() == pytest.approx(1, abs=1e-12)
    assert mass(3, 0.0).tolist() == [1, 0, 0, 0]
    assert mass(3, 1.0).tolist() == [0, 0, 0, 1]
    assert mass(0, 0.5).tolist() == [1]


@pytest.mark.parametrize("tail", [0.5, 0.03125, 0.025, 0.05 / 12, 1e-5])
def test_the_fewest_significant_losses_are_those_of_mcnemar(tail: float) -> None:
    # 0.03125 is the tail of exactly 5 of 5: a level that is met counts.
    for coins, heads in enumerate(least_significant(120, tail).tolist()):
        assert heads == coins + 1 or one_sided_p(heads, coins - heads) <= tail
        assert heads == 1 or one_sided_p(heads - 1, coins - heads + 1) > tail


@pytest.mark.parametrize("chance", [0.0, 0.5, 0.75, 1.0])
def test_tails_that_follow_from_one_another_are_the_tails(chance: float) -> None:
    needed = least_significant(150, 0.025)
    expected = [
        1 - exact(heads - 1, trials, Fraction(chance)) if heads <= trials else 0.0
        for trials, heads in enumerate(needed.tolist())
    ]
    assert at_least(needed, chance) == pytest.approx(expected, abs=1e-12)


def test_they_stay_exact_over_many_trials() -> None:
    needed = least_significant(14_042, 0.025)
    # The same tail summed at once, for the last number of trials alone.
    last = 1 - at_most(int(needed[-1]) - 1, 14_042, 0.51)[0]
    assert at_least(needed, 0.51)[-1] == pytest.approx(last, abs=1e-9)
    assert last == pytest.approx(0.659, abs=0.01)
