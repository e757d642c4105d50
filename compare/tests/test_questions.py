import pytest
from driftline.questions import fixed_order


def test_order_of_gsm8k_is_the_known_one() -> None:
    assert fixed_order(1319, 12) == [163, 262, 1234, 96, 307, 475, 288, 1177, 806, 1182, 346, 731]


def test_whole_order_asks_each_question_once() -> None:
    assert sorted(fixed_order(1319, 1319)) == list(range(1319))


def test_shorter_order_begins_longer_one() -> None:
    assert fixed_order(1319, 1319)[:300] == fixed_order(1319, 300)


def test_other_seed_gives_other_order() -> None:
    assert fixed_order(100, 100, seed=1) != fixed_order(100, 100, seed=2)


def test_every_question_is_as_likely_to_come_first() -> None:
    first = [fixed_order(5, 1, seed=seed)[0] for seed in range(2000)]
    # A share of one fifth has a standard error of 0.9 points here.
    assert all(abs(first.count(doc) / 2000 - 0.2) < 0.035 for doc in range(5))


@pytest.mark.parametrize("count", [0, -1, 6])
def test_count_outside_the_questions_is_refused(count: int) -> None:
    with pytest.raises(ValueError, match=f"cannot ask {count} questions of 5"):
        fixed_order(5, count)
