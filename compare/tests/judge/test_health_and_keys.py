"""Health before accuracy, and comparability before both."""

import pytest
from driftline.contracts.words import Verdict
from driftline.judge.run import judge


def judged(build, base, head):
    view = judge(build.run(build.evidence(build.lane(), base, head)))
    return view.lanes[0]


def test_one_missing_answer_of_300_is_within_the_budget_and_two_are_not(build):
    base = build.evaluation(build.answers())
    share = dict.fromkeys(base.scores.metrics, 200 / 299)  # question 0 was a wrong answer
    scores = base.scores.model_copy(update={"metrics": share})
    one, two = (build.replace(base, samples=base.samples[count:], scores=scores) for count in (1, 2))
    assert judged(build, base, one).verdict is Verdict.EQUIVALENT
    lane = judged(build, base, two)
    assert lane.verdict is Verdict.NOT_COMPARABLE
    assert any("2 answers missing" in reason for reason in lane.reasons)


def test_doubled_and_cut_answers_count_against_the_budget(build):
    base = build.evaluation(build.answers())
    doubled = build.replace(base, samples=base.samples + base.samples[:2])
    cut = build.replace(base, samples=tuple(build.replace(one, left_truncated=True) for one in base.samples))
    assert "2 doubled" in judged(build, base, doubled).reasons[0]
    assert "300 prompts cut" in judged(build, base, cut).reasons[0]


@pytest.mark.parametrize("change", ["mean", "question"])
def test_a_score_that_is_not_the_one_lm_eval_told_is_refused(build, change):
    base = build.evaluation(build.answers())
    scores = base.scores
    if change == "mean":
        scores = scores.model_copy(update={"metrics": {**scores.metrics, "exact_match,strict-match": 0.99}})
    else:
        scores = scores.model_copy(
            update={"right": {**scores.right, "strict-match": [*scores.right["strict-match"][:-1], 0]}}
        )
    lane = judged(build, base, build.replace(base, scores=scores))
    assert lane.verdict is Verdict.NOT_COMPARABLE
    assert "recomputed" in lane.reasons[0]


def test_a_length_stop_and_an_answer_without_a_number_are_answers(build):
    base = build.evaluation(build.answers())
    odd = build.replace(base.samples[0], response="no number", finish_reason="length")
    lane = judged(build, base, build.replace(base, samples=(odd, *base.samples[1:])))
    head = next(arm for arm in lane.health if arm.arm == "head")
    assert (head.length_stops, head.invalid) == (1, {"strict-match": 1, "flexible-extract": 1})
    assert lane.verdict is Verdict.EQUIVALENT


def test_a_must_match_difference_blocks_and_is_named(build):
    base = build.evaluation(build.answers())
    lane = judged(build, base, build.replace(base, must_match={"gpu_type": "H100"}))
    assert lane.verdict is Verdict.NOT_COMPARABLE
    assert lane.reasons == ["the arms differ in gpu_type"]
    assert lane.comparisons == []


def test_a_recorded_difference_blocks_unless_the_commit_made_it(build):
    base = build.evaluation(build.answers())
    torch = judged(build, base, build.replace(base, recorded={"torch": "2.14.0"}))
    assert torch.verdict is Verdict.NOT_COMPARABLE
    one, other = ({"served.ssd_prefill": name} for name in ("old.ssd", "new.ssd"))
    served = judged(build, build.replace(base, recorded=one), build.replace(base, recorded=other))
    assert served.verdict is Verdict.EQUIVALENT
    assert [(each.field, each.blocks) for each in served.key_differences] == [("served.ssd_prefill", False)]


def test_other_prompts_do_not_pair(build):
    base = build.evaluation(build.answers())
    other = build.replace(base.samples[5], prompt_hash="0" * 64)
    lane = judged(build, base, build.replace(base, samples=(*base.samples[:5], other, *base.samples[6:])))
    assert lane.verdict is Verdict.NOT_COMPARABLE
    assert "question 5" in lane.reasons[0]
