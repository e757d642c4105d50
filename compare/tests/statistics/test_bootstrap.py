import numpy as np
import pytest
from driftline.statistics.bootstrap import mean_interval
from scipy.stats import bootstrap


def test_same_values_have_no_spread() -> None:
    assert mean_interval(np.zeros(300), level=0.9) == (0.0, 0.0)
    assert mean_interval(np.full(5, -0.25), level=0.9) == (-0.25, -0.25)


def test_nothing_to_resample_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one question"):
        mean_interval(np.array([]), level=0.9)


def test_agrees_with_scipy_on_skewed_values() -> None:
    values = np.random.default_rng(9).exponential(size=80) ** 2
    theirs = bootstrap(
        (values,), np.mean, confidence_level=0.9, n_resamples=20_000, method="BCa", rng=1
    ).confidence_interval
    ours = mean_interval(values, level=0.9)
    assert ours == pytest.approx((theirs.low, theirs.high), rel=0.03)
    assert values.mean() - ours[0] < ours[1] - values.mean(), "a right-skewed mean reaches farther up than down"


def test_one_odd_question_among_equal_ones_stays_finite() -> None:
    values = np.zeros(300)
    values[0] = -1
    low, high = mean_interval(values, level=0.9)
    assert -0.05 < low < -1 / 300 <= high <= 0


def test_same_seed_gives_same_interval() -> None:
    values = np.random.default_rng(10).normal(size=50)
    assert mean_interval(values, level=0.9) == mean_interval(values, level=0.9)


def test_coverage_is_near_the_level_on_skewed_values() -> None:
    rng = np.random.default_rng(11)
    samples = rng.exponential(size=(600, 100))
    hits = [low <= 1 <= high for low, high in (mean_interval(each, level=0.9, draws=600) for each in samples)]
    # 600 samples at 0.9 have a standard error of 0.012.
    assert np.mean(hits) == pytest.approx(0.9, abs=0.035)
