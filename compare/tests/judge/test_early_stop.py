"""Lanes that may stop early, judged: whichever arm was stopped, late or not at all, the verdict is that of the first look."""

from dataclasses import replace

import numpy as np
import pytest
from driftline.contracts.words import Verdict
from driftline.evidence import ForcedEvidence
from driftline.judge.answers import Answers
from driftline.judge.early_stop import asked_together, stop_of
from driftline.judge.run import judge
from driftline.judge.stopping import Plan, StopKind
from driftline.report.markdown import markdown

QUESTIONS = 600


@pytest.fixture
def early(build):
    return build.lane(questions=QUESTIONS).model_copy(update={"early_stopping": True})


def stopped(evaluation, after):
    """An evaluation as it is stored when its child was told that `after` questions are enough."""
    kept, rest = evaluation.samples[:after], evaluation.samples[after:]
    right = {name: [doc for doc in hits if doc < after] for name, hits in evaluation.scores.right.items()}
    metrics = {f"exact_match,{name}": len(hits) / after for name, hits in right.items()}
    return replace(
        evaluation, samples=kept, expected_doc_ids=evaluation.expected_doc_ids[:after],
        scores=evaluation.scores.model_copy(update={"right": right, "metrics": metrics}),
        forced_only=tuple(ForcedEvidence(each.doc_id, each.logprobs) for each in rest),
    )  # fmt: skip


def judged(build, lane, base, head):
    return judge(build.run(build.evidence(lane, base, head)))


def every(n, step):
    return range(0, n, step)


def test_an_equivalent_lane_says_where_and_why_it_stopped(build, early):
    whole = build.evaluation(build.answers(QUESTIONS))
    view = judged(build, early, stopped(whole, 200), stopped(whole, 200))
    lane = view.lanes[0]
    assert view.verdict is lane.verdict is Verdict.EQUIVALENT
    assert lane.reasons[0].startswith(
        "stopped after 200 of 600 questions: a difference of 2.5 points or more is ruled out"
    )
    assert [cell.n for cell in lane.comparisons] == [200, 200, QUESTIONS]
    assert [arm.questions for arm in lane.health] == [200, 200]
    assert [arm.missing for arm in lane.health] == [0, 0]
    assert view.headline.color == "green"


@pytest.mark.parametrize("after", [200, QUESTIONS])
def test_each_interval_says_its_own_level(build, early, after):
    whole = build.evaluation(build.answers(QUESTIONS))
    arm = stopped(whole, after) if after < QUESTIONS else whole
    view = judged(build, early, arm, arm)
    assert [round(cell.interval_level, 2) for cell in view.lanes[0].comparisons] == [0.92, 0.92, 0.9]
    text = markdown(view)
    assert (text.count(" at 92 %"), text.count(" at 90 %")) == (2, 1)
    plain = judged(build, build.lane(questions=QUESTIONS), whole, whole)
    assert {cell.interval_level for cell in plain.lanes[0].comparisons} == {0.9}


def test_late_lost_or_one_sided_the_verdict_is_the_same(build, early):
    base, head = (
        build.evaluation(build.answers(QUESTIONS)),
        build.evaluation(build.answers(QUESTIONS, range(100, 200, 6))),
    )
    after = stop_of((Answers(base), Answers(head)), Plan(QUESTIONS, 0.025, 1)).after
    expected = judged(build, early, stopped(base, after), stopped(head, after)).lanes[0]
    assert expected.verdict is Verdict.REGRESSED
    for arms in ((base, head), (base, stopped(head, after)), (stopped(base, after), stopped(head, after + 100))):
        found = judged(build, early, *arms).lanes[0]
        assert found.comparisons == expected.comparisons
        assert found.reasons[:2] == expected.reasons[:2]


def test_a_regressed_lane_tells_values_that_hold_at_any_look(build, early):
    head = build.evaluation(build.answers(QUESTIONS, range(100, 200, 6)))
    lane = judged(build, early, build.evaluation(build.answers(QUESTIONS)), head).lanes[0]
    cell = lane.comparisons[0]
    assert (cell.n, cell.lost, cell.gained) == (200, 17, 0)
    assert cell.p_adjusted <= 0.01
    assert cell.interval[0] < -17 / 200 < cell.interval[1] < 0
    assert "at any look" in lane.reasons[0]


def test_log_probabilities_of_all_questions_decide_beside_a_stop(build, early):
    """No answer flips, every token moves: equivalent by the answers after 200, regressed by what is below them."""
    answers = build.answers(QUESTIONS)
    moved = np.full(QUESTIONS, -0.02) + np.linspace(-0.001, 0.001, QUESTIONS)
    head = stopped(build.evaluation(answers, moved=moved), 200)
    lane = judged(build, early, stopped(build.evaluation(answers), 200), head).lanes[0]
    assert lane.verdict is Verdict.REGRESSED
    by_metric = {cell.metric: cell for cell in lane.comparisons}
    assert by_metric["logprob"].n == QUESTIONS
    assert by_metric["exact_match"].verdict is Verdict.EQUIVALENT


def test_what_comes_after_the_stop_does_not_count(build, early):
    """Nothing flips in the first 200 questions: they decide, though a later block is all wrong and was asked."""
    base, head = (
        build.evaluation(build.answers(QUESTIONS)),
        build.evaluation(build.answers(QUESTIONS, {*range(500, 540)})),
    )
    usual = judged(build, build.lane(questions=QUESTIONS), base, head).lanes[0]
    sparing = judged(build, early, base, head).lanes[0]
    assert stop_of((Answers(base), Answers(head)), Plan(QUESTIONS, 0.025, 1)).kind is StopKind.EQUIVALENT
    assert (sparing.comparisons[0].n, sparing.comparisons[0].verdict) == (200, Verdict.EQUIVALENT)
    assert (usual.comparisons[0].n, usual.comparisons[0].verdict) == (QUESTIONS, Verdict.REGRESSED)


def test_beside_a_lane_that_may_stop_all_questions_are_tested_at_four_percent(build, early):
    """13 lost and 2 gained of 300: p = 0.0074, after Holm over six cells 0.044; alone, over three, 0.022."""
    lost, gained = {*range(1, 40, 3)}, {100, 103}
    lane = build.lane("canary V0", questions=300)
    pair = build.evaluation(build.answers(300, gained)), build.evaluation(build.answers(300, lost))
    other = [build.evaluation(build.answers(QUESTIONS))] * 2
    for beside, expected in ((early, Verdict.UNDERPOWERED), (build.lane(questions=QUESTIONS), Verdict.REGRESSED)):
        view = judge(build.run(build.evidence(beside, *other), build.evidence(lane, *pair)))
        cell = view.lanes[1].comparisons[0]
        assert (cell.lost, cell.gained, round(cell.p_adjusted, 3)) == (13, 2, 0.044)
        assert cell.verdict is expected


def test_without_a_decision_all_questions_count(build, early):
    """Every twelfth answer flips, half of them back: no look decides."""
    base = build.evaluation(build.answers(QUESTIONS, every(QUESTIONS, 16)))
    head = build.evaluation(build.answers(QUESTIONS, range(8, QUESTIONS, 16)))
    assert stop_of((Answers(base), Answers(head)), Plan(QUESTIONS, 0.025, 1)) is None
    lane = judged(build, early, base, head).lanes[0]
    assert [cell.n for cell in lane.comparisons] == [QUESTIONS] * 3
    assert "asked all 600 questions, though it might have stopped early: exact_match has 92 % intervals" in lane.reasons


def test_an_arm_stopped_for_answers_that_did_not_come_again_is_never_green(build, early):
    """Head was stopped at 200; base's next attempt answers otherwise, and no look decides any more."""
    base = build.evaluation(build.answers(QUESTIONS, every(QUESTIONS, 16)))
    head = stopped(build.evaluation(build.answers(QUESTIONS, range(8, QUESTIONS, 16))), 200)
    view = judged(build, early, base, head)
    assert view.lanes[0].comparisons[0].verdict is Verdict.UNDERPOWERED
    assert view.lanes[0].reasons[0].startswith("only the first 200 of 600 questions were asked of both arms")
    assert view.headline.color != "green"
    assert asked_together((Answers(base), Answers(head))) == 200


def test_an_answer_that_is_missing_is_no_stop(build, early):
    """Within the budget of health: looks end before the gap, and all that was answered is tested."""
    base = build.evaluation(build.answers(QUESTIONS, every(QUESTIONS, 16)))
    head = build.evaluation(build.answers(QUESTIONS, range(8, QUESTIONS, 16)))
    head = replace(head, samples=head.samples[:50] + head.samples[51:])
    lane = judged(build, early, base, head).lanes[0]
    assert [cell.n for cell in lane.comparisons] == [QUESTIONS - 1] * 3
    assert lane.reasons[-1].startswith("asked all 600 questions")
