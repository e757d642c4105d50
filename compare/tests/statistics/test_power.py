import numpy as np
import pytest
from driftline.statistics.mcnemar import exact_p
from driftline.statistics.power import (
    RESOLUTION,
    Spread,
    mcnemar_power,
    questions_for_equivalence,
    smallest_visible_drop,
    smallest_visible_mean,
)
from driftline.statistics.tango import score_interval


@pytest.mark.parametrize(
    ("share", "points"), [(0.02, 1.1), (0.04, 1.5), (0.06, 1.9), (0.10, 2.4), (0.15, 3.0), (0.20, 3.5)]
)
def test_full_gsm8k_by_discordant_share(share: float, points: float) -> None:
    discordant = round(share * 1319)
    drop = smallest_visible_drop(discordant // 2, discordant - discordant // 2, 1319, alpha=0.05)
    # The known values are a normal approximation; the exact test needs a little more.
    assert drop is not None
    assert points - 0.02 <= 100 * drop <= points + 0.12


@pytest.mark.parametrize(("n", "power"), [(100, 0.373), (249, 0.801)])
def test_exact_power_is_the_published_one(n: int, power: float) -> None:
    # R's pwrss, checked there against PASS and G*Power: 20 % against 10 % discordant, two-sided at 5 %.
    assert mcnemar_power(0.1, 0.3, n, alpha=0.05) == pytest.approx(power, abs=5.1e-4)


def test_248_pairs_are_the_last_below_the_published_sample_size_of_249() -> None:
    assert mcnemar_power(0.1, 0.3, 248, alpha=0.05) < 0.8 <= mcnemar_power(0.1, 0.3, 249, alpha=0.05)


def test_no_discordant_pair_still_has_a_visible_drop() -> None:
    # Six pure losses are significant; a binomial of 300 reaches six with 80 % probability at 2.6 %.
    drop = smallest_visible_drop(0, 0, 300, alpha=0.05)
    assert drop == pytest.approx(0.0262, abs=2e-4)
    assert mcnemar_power(0.0262, 0.0, 300, alpha=0.05) == pytest.approx(0.8, abs=0.01)


def test_too_few_questions_see_nothing() -> None:
    assert smallest_visible_drop(0, 0, 5, alpha=0.05) is None


def test_more_tests_and_more_discordance_see_less() -> None:
    one, six = (smallest_visible_drop(9, 9, 300, alpha=0.05 / m) for m in (1, 6))
    noisy = smallest_visible_drop(30, 30, 300, alpha=0.05)
    assert one is not None and six is not None and noisy is not None
    assert one < six
    assert one < noisy


def test_simulated_power_is_80_percent() -> None:
    drop = smallest_visible_drop(15, 15, 300, alpha=0.05)
    assert drop is not None
    rng = np.random.default_rng(3)
    lost, gained, _ = rng.multinomial(300, ((0.1 + drop) / 2, (0.1 - drop) / 2, 0.9), size=4000).T
    found = [exact_p(int(a), int(b)) <= 0.05 and a > b for a, b in zip(lost, gained, strict=True)]
    assert np.mean(found) == pytest.approx(0.8, abs=0.025)


def test_power_without_a_drop_is_at_most_half_the_level() -> None:
    assert 0 < mcnemar_power(1e-12, 0.1, 300, alpha=0.05) <= 0.025


def test_counts_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit"):
        smallest_visible_drop(6, 5, 10, alpha=0.05)


def test_visible_mean_is_2_8_standard_errors() -> None:
    assert smallest_visible_mean(Spread(0.05, 300), alpha=0.05) == pytest.approx(2.8016 * 0.05 / 300**0.5, rel=1e-3)


def test_visible_mean_of_one_question_is_unknown_and_of_equal_ones_not_0() -> None:
    assert smallest_visible_mean(Spread(0.0, 1), alpha=0.05) is None
    seen = smallest_visible_mean(Spread(0.0, 300), alpha=0.05)
    assert seen is not None
    assert 0 < seen < RESOLUTION


def test_questions_for_equivalence_reach_it_in_80_percent() -> None:
    n = questions_for_equivalence(0.1, 0.025)
    assert n == 1371
    rng = np.random.default_rng(4)
    lost, gained, _ = rng.multinomial(n, (0.05, 0.05, 0.9), size=1500).T
    intervals = [score_interval(int(a), int(b), n, level=0.9) for a, b in zip(lost, gained, strict=True)]
    assert np.mean([low > -0.025 and high < 0.025 for low, high in intervals]) == pytest.approx(0.8, abs=0.035)
