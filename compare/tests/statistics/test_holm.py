import numpy as np
import pytest
from driftline.statistics.holm import adjusted


def test_known_values() -> None:
    assert adjusted([0.01, 0.04, 0.03, 0.005], 4) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def test_as_rs_p_adjust_gives_them() -> None:
    assert adjusted([0.01, 0.02, 0.03, 0.04, 0.05], 5) == pytest.approx([0.05, 0.08, 0.09, 0.09, 0.09])


def test_tests_that_could_not_be_made_keep_their_place() -> None:
    assert adjusted([0.01, 0.04], 6) == pytest.approx([0.06, 0.2])
    assert adjusted([0.01, 0.04], 6) == pytest.approx(adjusted([0.01, 0.04, 1, 1, 1, 1], 6)[:2])


def test_nothing_exceeds_1_and_order_stays() -> None:
    assert adjusted([0.9, 0.5, 0.5], 3) == [1.0, 1.0, 1.0]
    assert adjusted([], 3) == []


def test_more_tests_than_planned_are_refused() -> None:
    with pytest.raises(ValueError, match="2 p-values for 1 planned"):
        adjusted([0.1, 0.2], 1)


def test_some_false_alarm_among_six_true_nulls_is_rarer_than_the_level() -> None:
    rng = np.random.default_rng(5)
    alarms = [min(adjusted(list(p), 6)) <= 0.05 for p in rng.uniform(size=(4000, 6))]
    assert np.mean(alarms) == pytest.approx(0.05, abs=0.012)
