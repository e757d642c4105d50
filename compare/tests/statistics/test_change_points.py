"""Planted steps are found where they are; spikes are not steps; a history without a change rarely shows one."""

import numpy as np
import pytest
from driftline.statistics.change_points import CHANGE_ALPHA, SHORTEST, change_points

NOISE = 0.005
"""Standard deviation of a score between commits: 1,319 questions of which 3 % flip."""


def history(*levels: tuple[float, int], seed: int = 1, noise: float = NOISE) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([np.full(count, level) for level, count in levels]) + rng.normal(
        0, noise, sum(count for _, count in levels)
    )


def places(values: np.ndarray) -> list[int]:
    return [found.index for found in change_points(values)]


def test_one_planted_step_with_its_levels_and_confidence() -> None:
    (found,) = change_points(history((0.60, 25), (0.57, 15)))
    assert found.index == 25
    assert (found.before, found.after) == (pytest.approx(0.60, abs=0.004), pytest.approx(0.57, abs=0.004))
    assert found.p_value == 2 / 1000, "no order of a thousand splits as well; twice, for one split and for two"
    assert found.confidence == pytest.approx(0.998)


def test_several_planted_steps() -> None:
    assert places(history((0.60, 20), (0.57, 15), (0.62, 20), (0.55, 10))) == [20, 35, 55]


def test_the_shortest_level_at_the_end_is_seen_as_soon_as_it_is_there() -> None:
    values = history((0.60, 30), (0.57, SHORTEST))
    assert places(values) == [30]
    assert places(values[:-1]) == [], "two commits are no level yet"


def test_a_level_that_came_and_went() -> None:
    assert places(history((0.60, 30), (0.55, 4), (0.60, 30))) == [30, 34]


@pytest.mark.parametrize("place", [0, 1, 15, 28, 29])
@pytest.mark.parametrize("height", [0.03, -0.6])
def test_a_single_spike_is_no_change(place: int, height: float) -> None:
    values = history((0.60, 30))
    values[place] += height
    assert places(values) == []


@pytest.mark.parametrize("place", [10, 27, 28])
def test_two_odd_commits_in_a_row_are_no_level(place: int) -> None:
    """Of twenty histories: one in a hundred may show a change of its own."""
    shown = 0
    for seed in range(20, 40):
        values = history((0.60, 30), seed=seed)
        values[place : place + 2] -= 0.1
        shown += bool(places(values))
    assert shown <= 1


def test_a_spike_does_not_hide_a_step() -> None:
    values = history((0.60, 20), (0.575, 20))
    values[8] = 0.0
    assert places(values) == [20]


def test_bit_identical_levels() -> None:
    assert places(np.repeat([0.6, 0.59], (20, 5))) == [20]
    assert places(np.full(40, 0.6)) == []
    flat = np.full(40, 0.6)
    flat[-1] = 0.0
    assert places(flat) == []


def test_unit_and_sign_do_not_matter() -> None:
    values = history((0.60, 20), (0.57, 20))
    assert places(-1e-4 * values - 3) == places(values) == [20]


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_too_short_a_history_has_none(count: int) -> None:
    assert change_points(np.linspace(0, 1, count)) == ()


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_commit_that_was_not_measured_is_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="leave out commits that were not measured"):
        change_points(np.array([0.6] * 9 + [bad]))


def test_an_alpha_that_the_draws_cannot_show_is_refused() -> None:
    with pytest.raises(ValueError, match="draw at least 1999"):
        change_points(np.zeros(10), alpha=0.001)


def test_same_history_gives_same_points() -> None:
    values = history((0.60, 12), (0.59, 9), seed=4)
    assert change_points(values) == change_points(values)


def test_simulated_false_alarms_keep_the_level() -> None:
    """Skewed noise with ties, as scores have: whole questions of 300."""
    rng = np.random.default_rng(5)
    histories = rng.binomial(300, 0.97, size=(400, 20)) / 300
    alarms = sum(bool(change_points(values, alpha=0.05, draws=79)) for values in histories)
    # 400 draws at 5 % have a standard error of 1.1 %. The split into levels only takes alarms away.
    assert 0.01 <= alarms / 400 <= 0.05 + 3 * 0.011
    assert CHANGE_ALPHA < 0.05
