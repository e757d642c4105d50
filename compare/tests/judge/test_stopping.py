"""When a lane stops: by known counts, at every kind of end, and in seeded runs with what they promise."""

import math

import numpy as np
import pytest
from driftline.judge.stopping import EARLY_ALPHA, Pairs, Plan, StopKind, first_stop, lane_log_e, look, looks
from driftline.statistics.e_process import log_e_no_drift

FULL = Plan(1319, 0.025, 1)


def kind(*cells: tuple[int, int, int], plan: Plan = FULL) -> StopKind | None:
    stop = look([Pairs(*cell) for cell in cells], plan)
    return stop and stop.kind


def test_looks_come_after_whole_blocks_and_never_at_the_end() -> None:
    assert list(looks(FULL)) == list(range(100, 1301, 100))
    assert list(looks(Plan(300, 0.025, 1))) == [100, 200]
    assert list(looks(Plan(100, 0.025, 1))) == list(looks(Plan(24, 0.025, 1))) == []


def test_no_flip_is_equivalent_after_two_hundred() -> None:
    assert kind((0, 0, 100)) is None
    assert kind((0, 0, 200), (0, 0, 200)) is StopKind.EQUIVALENT


def test_every_cell_must_be_inside() -> None:
    assert kind((0, 0, 200), (9, 9, 200)) is None


def test_a_drop_of_five_points_is_called() -> None:
    stop = look([Pairs(20, 1, 400)], FULL)
    assert stop is not None
    assert (stop.kind, stop.after) == (StopKind.REGRESSED, 400)
    assert stop.log_e == log_e_no_drift(20, 1)
    assert stop.sentence.startswith(
        "stopped after 400 of 1319 questions: 20 answers lost and 1 gained are no chance (e = "
    )
    assert kind((1, 30, 400)) is StopKind.IMPROVED


def test_a_drop_that_may_end_inside_the_margin_is_not_called() -> None:
    """Ten answers lost of 1,000 are no chance, and yet within the margin."""
    assert log_e_no_drift(10, 0) > -math.log(EARLY_ALPHA)
    assert kind((10, 0, 1000)) is StopKind.EQUIVALENT
    assert kind((10, 0, 600)) is None


def test_lanes_share_what_is_spent_and_filters_do_not_add_to_it() -> None:
    cell, log_e = Pairs(20, 1, 400), log_e_no_drift(20, 1)
    enough = math.floor(EARLY_ALPHA * math.exp(log_e))
    assert look([cell], Plan(1319, 0.025, enough)) is not None
    assert look([cell], Plan(1319, 0.025, enough + 1)) is None
    assert lane_log_e([cell, cell]) == pytest.approx(log_e)
    assert math.exp(lane_log_e([cell, Pairs(0, 0, 400)])) == pytest.approx((math.exp(log_e) + 1) / 2)


def test_what_all_questions_would_not_settle_is_given_up() -> None:
    """A third of the answers change, in both directions alike: the margin is out of reach, and so is significance."""
    assert kind((200, 200, 1200)) is StopKind.FUTILE
    assert kind((20, 20, 100)) is None


def test_the_first_look_that_decides_counts() -> None:
    seen = [[Pairs(0, 0, 100)], [Pairs(0, 0, 200)], [Pairs(60, 0, 300)]]
    stop = first_stop(seen, FULL)
    assert stop is not None
    assert stop.after == 200
    assert first_stop(seen[:1], FULL) is None


def test_cells_of_different_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match=r"\[100, 200\]"):
        look([Pairs(0, 0, 100), Pairs(0, 0, 200)], FULL)


@pytest.mark.parametrize(
    ("lost", "gained", "most_asked", "kinds"),
    [
        (0.01, 0.01, 0.48, {StopKind.EQUIVALENT}),
        (0.045, 0.015, 0.62, {StopKind.REGRESSED}),
        (0.055, 0.005, 0.28, {StopKind.REGRESSED}),
    ],
)
def test_goals_in_seeded_runs(lost: float, gained: float, most_asked: float, kinds: set[StopKind]) -> None:
    """300 runs; docs/early_stopping.md has 10,000. The bounds leave three standard errors."""
    stops, asked = simulated(lost, gained)
    assert asked / 1319 <= most_asked
    wrong = sum(stop is not None and stop not in kinds for stop in stops)
    assert wrong <= 6


@pytest.mark.parametrize("discordant", [0.04, 0.10])
def test_false_alarms_in_seeded_runs(discordant: float) -> None:
    stops, _ = simulated(discordant / 2, discordant / 2)
    assert sum(stop in (StopKind.REGRESSED, StopKind.IMPROVED) for stop in stops) <= 300 * EARLY_ALPHA + 5


def simulated(lost: float, gained: float) -> tuple[list[StopKind | None], float]:
    """How 300 runs were stopped, and how many questions they asked in the mean."""
    rng = np.random.default_rng(21467)
    stops, asked = [], []
    for _ in range(300):
        answers = rng.choice([-1, 0, 1], p=[lost, 1 - lost - gained, gained], size=1319)
        seen = ([Pairs(int((answers[:n] < 0).sum()), int((answers[:n] > 0).sum()), n)] for n in looks(FULL))
        stop = first_stop(seen, FULL)
        stops.append(stop and stop.kind)
        asked.append(stop.after if stop else 1319)
    return stops, float(np.mean(asked))
