import numpy as np
import pytest
from driftline.statistics.exact_interval import exact_interval
from driftline.statistics.mcnemar import exact_p


@pytest.mark.parametrize("n", [1, 60, 300, 1319])
@pytest.mark.parametrize("level", [0.9, 0.95])
def test_without_a_discordant_pair_it_is_the_closed_form(n: int, level: float) -> None:
    end = 1 - ((1 - level) / 2) ** (1 / n)
    assert exact_interval(0, 0, n, level=level) == pytest.approx((-end, end), abs=1e-9)


@pytest.mark.parametrize(("lost", "gained", "n"), [(7, 1, 21), (3, 0, 300), (0, 4, 60), (2, 8, 1319), (5, 5, 10)])
def test_limits_are_quantiles_of_the_products_drawn(lost: int, gained: int, n: int) -> None:
    """Fay and Lumbard's own definition, by a million draws of the two confidence distributions."""
    rng, m = np.random.default_rng(20), lost + gained
    upper_share, lower_share = (rng.beta(*each, size=1_000_000) for each in ((m + 1, max(n - m, 1e-9)), (m, n - m + 1)))
    more, fewer = (
        rng.beta(*each, size=1_000_000) for each in ((gained + 1, max(lost, 1e-9)), (max(gained, 1e-9), lost + 1))
    )
    high = max(np.quantile(share * (2 * more - 1), 0.975) for share in (upper_share, lower_share))
    low = min(np.quantile(share * (2 * fewer - 1), 0.025) for share in (upper_share, lower_share))
    assert exact_interval(lost, gained, n, level=0.95) == pytest.approx((low, high), abs=1.5e-3)


def test_it_leaves_out_0_exactly_when_one_side_of_mcnemar_rejects() -> None:
    for lost in range(11):
        for gained in range(11 - lost):
            low, high = exact_interval(lost, gained, 300, level=0.9)
            assert (low > 0 or high < 0) == (exact_p(lost, gained) <= 0.1), (lost, gained)


def test_all_lost_and_all_gained_end_at_one() -> None:
    low, high = exact_interval(10, 0, 10, level=0.9)
    assert low == -1
    # All ten gone: B is below 1 − 0.05^(1/10) at most, T is 1.
    assert high == pytest.approx(2 * (1 - 0.05 ** (1 / 10)) - 1, abs=0.06)
    assert exact_interval(0, 10, 10, level=0.9) == pytest.approx((-high, 1))


def test_intervals_are_nested_mirrored_and_hold_the_difference() -> None:
    narrow, wide = exact_interval(6, 2, 300, level=0.9), exact_interval(6, 2, 300, level=0.95)
    assert wide[0] < narrow[0] < (2 - 6) / 300 < narrow[1] < wide[1]
    assert exact_interval(2, 6, 300, level=0.9) == pytest.approx((-narrow[1], -narrow[0]))


@pytest.mark.parametrize("counts", [(-1, 0, 10), (0, 0, 0), (6, 5, 10)])
def test_counts_that_do_not_fit_are_refused(counts: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="do not fit"):
        exact_interval(*counts, level=0.9)


def test_level_outside_its_range_is_refused() -> None:
    with pytest.raises(ValueError, match="confidence level"):
        exact_interval(1, 1, 10, level=90)


def test_simulated_error_is_never_above_the_promise() -> None:
    rng = np.random.default_rng(21)
    for lost, gained in ((0.02, 0.0), (0.01, 0.03), (0.04, 0.04)):
        draws = rng.multinomial(60, (lost, gained, 1 - lost - gained), size=1500)
        limits: dict[tuple[int, int], float] = {}
        missed = 0
        for a, b, _ in draws:
            pair = (int(a), int(b))
            if pair not in limits:
                limits[pair] = exact_interval(*pair, 60, level=0.9)[1]
            missed += limits[pair] < gained - lost
        # 1,500 draws at 5 % have a standard error of 0.6 %.
        assert missed / 1500 <= 0.05 + 3 * 0.006
