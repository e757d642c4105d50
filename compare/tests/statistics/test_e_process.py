"""The e-processes: known answers, degenerate cases, and what they promise however often one looks."""

import math

import numpy as np
import pytest
from driftline.statistics.e_process import interval, log_e_above, log_e_inside, log_e_no_drift

MARGIN = 0.025


def test_without_pairs_nothing_is_known() -> None:
    assert log_e_no_drift(0, 0) == pytest.approx(0, abs=1e-12)
    assert log_e_above(0, 0, 0, bound=-MARGIN) == pytest.approx(0, abs=1e-12)


def test_no_drift_is_the_mixture_of_likelihood_ratios() -> None:
    """Against numerical integration over the share of losses."""
    from scipy.integrate import quad
    from scipy.stats import beta

    def mixture(p: float) -> float:
        prior = 0.9 * beta.pdf(p, 6, 2) + 0.1 * beta.pdf(p, 2, 6)
        return float(prior * p**12 * (1 - p) ** 3 * 2**15)

    assert math.exp(log_e_no_drift(12, 3)) == pytest.approx(quad(mixture, 0, 1)[0], rel=1e-9)


def test_difference_is_the_mean_of_four_bettors() -> None:
    """Question by question, as the bettors would play."""
    answers = [0] * 5 + [1, -1, 0, 1]
    capitals = []
    for stake in (0.3, 0.5, 0.7, 0.9):
        capital = 1.0
        for x in answers:
            capital *= 1 - stake + stake * ((x + 1) / 2) / ((1 - MARGIN) / 2)
        capitals.append(capital)
    assert math.exp(log_e_above(1, 2, 9, bound=-MARGIN)) == pytest.approx(np.mean(capitals), rel=1e-12)


def test_one_step_is_fair_at_the_bound_and_unfair_below() -> None:
    """Expectation of one question's factor: 1 where the difference is the bound, less where it is smaller."""
    for lost, gained in ((0.065, 0.04), (0.2, 0.175), (0.025, 0.0), (0.03, 0.0)):
        now = math.exp(log_e_above(3, 2, 60, bound=-MARGIN))
        after = [log_e_above(3 + (x < 0), 2 + (x > 0), 61, bound=-MARGIN) for x in (-1, 1, 0)]
        expected = np.dot([lost, gained, 1 - lost - gained], np.exp(after))
        assert expected <= now * (1 + 1e-12)


def test_two_hundred_questions_without_a_flip_are_enough_for_the_margin() -> None:
    assert log_e_inside(0, 0, 200, margin=MARGIN) >= -math.log(0.04) > log_e_inside(0, 0, 100, margin=MARGIN)


def test_counts_of_thousands_stay_finite() -> None:
    assert math.isfinite(log_e_no_drift(1319, 0))
    assert math.isfinite(log_e_above(0, 100_000, 100_000, bound=-MARGIN))
    assert math.isfinite(log_e_inside(50_000, 50_000, 100_000, margin=MARGIN))


def test_interval_holds_what_is_not_rejected() -> None:
    low, high = interval(14, 4, 600, alpha=0.05)
    assert low < -10 / 600 < high
    assert log_e_above(14, 4, 600, bound=low) == pytest.approx(math.log(20), abs=1e-5)
    assert interval(4, 14, 600, alpha=0.05) == pytest.approx((-high, -low))
    assert interval(0, 0, 0, alpha=0.05) == (-1, 1)
    assert interval(7, 0, 7, alpha=0.05)[0] == -1.0
    inside = interval(3, 3, 500, alpha=0.04)
    assert (inside[0] > -MARGIN and inside[1] < MARGIN) is (log_e_inside(3, 3, 500, margin=MARGIN) >= -math.log(0.04))


@pytest.mark.parametrize("counts", [(-1, 0, 5), (0, -1, 5), (3, 3, 5)])
def test_counts_that_do_not_fit_are_refused(counts: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="do not fit"):
        log_e_above(*counts, bound=0.0)


def test_other_refusals_name_the_input() -> None:
    with pytest.raises(ValueError, match="negative"):
        log_e_no_drift(-1, 2)
    with pytest.raises(ValueError, match="not at 1"):
        log_e_above(0, 0, 5, bound=1.0)
    with pytest.raises(ValueError, match=r"not at 1\.5"):
        interval(0, 0, 5, alpha=1.5)


def test_looking_after_every_question_keeps_the_promise() -> None:
    """1,000 seeded runs of 250 questions at each null: the share that ever reaches 1/α is at most α."""
    rng = np.random.default_rng(21467)
    fair = rng.choice([-1, 0, 1], p=[0.05, 0.9, 0.05], size=(1000, 250))
    drop = rng.choice([-1, 0, 1], p=[0.055, 0.915, 0.03], size=(1000, 250))
    assert _ever(fair, lambda lost, gained, _: log_e_no_drift(lost, gained)) <= 0.05
    assert _ever(drop, lambda lost, gained, n: log_e_above(lost, gained, n, bound=-MARGIN)) <= 0.05


def _ever(runs, evidence) -> float:
    lost, gained = np.cumsum(runs < 0, axis=1), np.cumsum(runs > 0, axis=1)
    n = np.broadcast_to(np.arange(1, runs.shape[1] + 1), runs.shape)
    states, where = np.unique(np.stack([lost, gained, n]).reshape(3, -1), axis=1, return_inverse=True)
    found = np.array([evidence(*map(int, state)) for state in states.T])[where].reshape(runs.shape)
    return float((found.max(axis=1) >= math.log(20)).mean())
