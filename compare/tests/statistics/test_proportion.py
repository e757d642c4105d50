import numpy as np
import pytest
from driftline.statistics.proportion import clustered_share, exact_share


@pytest.mark.parametrize(
    ("hits", "trials", "interval"),
    [
        # Newcombe 1998 (Statistics in Medicine 17, 857), table I, the Clopper-Pearson method.
        (81, 263, (0.2527, 0.3676)),
        (15, 148, (0.0578, 0.1617)),
        (0, 20, (0.0, 0.1684)),
        (1, 29, (0.0009, 0.1776)),
    ],
)
def test_published_intervals(hits: int, trials: int, interval: tuple[float, float]) -> None:
    assert exact_share(hits, trials, level=0.95) == pytest.approx(interval, abs=5.1e-5)


def test_none_and_all_end_at_the_closed_form() -> None:
    assert exact_share(0, 300, level=0.9) == pytest.approx((0, 1 - 0.05 ** (1 / 300)))
    assert exact_share(300, 300, level=0.9) == pytest.approx((0.05 ** (1 / 300), 1))
    assert exact_share(0, 1, level=0.9) == pytest.approx((0, 0.95))


@pytest.mark.parametrize(("hits", "trials"), [(-1, 5), (6, 5), (0, 0)])
def test_what_is_no_share_is_refused(hits: int, trials: int) -> None:
    with pytest.raises(ValueError, match="is no share"):
        exact_share(hits, trials, level=0.9)


def counts(*values: int) -> np.ndarray:
    return np.array(values, dtype=np.int64)


def test_each_question_tried_once_gives_the_exact_interval() -> None:
    hits = np.repeat(counts(1, 0), (12, 288))
    assert clustered_share(hits, np.ones(300, np.int64), level=0.9) == pytest.approx(
        exact_share(12, 300, level=0.9), rel=3e-3
    )


def test_questions_that_always_flip_are_worth_no_more_when_tried_again() -> None:
    once = clustered_share(np.repeat(counts(1, 0), (12, 288)), np.ones(300, np.int64), level=0.9)
    again = clustered_share(np.repeat(counts(5, 0), (12, 288)), np.full(300, 5, np.int64), level=0.9)
    assert again == pytest.approx(once)


def test_questions_that_flip_each_time_anew_are_worth_almost_as_many_trials() -> None:
    rng = np.random.default_rng(1)
    hits = rng.binomial(5, 0.04, size=300)
    low, high = clustered_share(hits, np.full(300, 5, np.int64), level=0.9)
    exact = exact_share(float(hits.sum()), 1500, level=0.9)
    assert high - low == pytest.approx(exact[1] - exact[0], rel=0.15)


def test_no_hit_at_all_counts_each_question_once() -> None:
    zero = clustered_share(np.zeros(300, np.int64), np.full(300, 5, np.int64), level=0.9)
    assert zero == pytest.approx(exact_share(0, 300, level=0.9))


def test_a_question_that_was_never_tried_does_not_count() -> None:
    assert clustered_share(counts(1, 0, 0), counts(1, 1, 0), level=0.9) == clustered_share(
        counts(1, 0), counts(1, 1), level=0.9
    )


@pytest.mark.parametrize(
    ("hits", "trials"), [(counts(2), counts(1)), (counts(-1), counts(1)), (counts(0), counts(0)), (counts(), counts())]
)
def test_counts_that_do_not_fit_are_refused(hits: np.ndarray, trials: np.ndarray) -> None:
    with pytest.raises(ValueError, match="between 0 and trials"):
        clustered_share(hits, trials, level=0.9)


def test_simulated_coverage_of_flips_that_some_questions_are_prone_to() -> None:
    """Half of all flips fall on a tenth of the questions, tried four times each: at least 90 % are covered."""
    rng = np.random.default_rng(2)
    share, covered, draws = 0.04, 0, 1500
    for _ in range(draws):
        prone = rng.random(300) < 0.1
        chance = np.where(prone, share * 5, share * 5 / 9)
        low, high = clustered_share(rng.binomial(4, chance), np.full(300, 4, np.int64), level=0.9)
        covered += low <= share <= high
    # 1,500 draws at 0.9 have a standard error of 0.008; the interval is exact, so more may be covered.
    assert 0.885 <= covered / draws <= 0.95
