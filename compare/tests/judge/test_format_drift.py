"""The form of the answers moved and not what they say: said as such, and deciding nothing."""

import pytest
from driftline.contracts.words import Verdict
from driftline.judge.answers import Answers
from driftline.judge.format_drift import format_drift, format_sentences
from driftline.judge.run import judge
from driftline.statistics.mcnemar import exact_p

RIGHT = [index for index in range(300) if index % 3]


def answering(build, responses):
    """All of `build.answers()`, but for some questions another response; lm-eval's scores follow from the text."""
    base = build.evaluation(build.answers())
    samples = tuple(build.replace(each, response=responses.get(each.doc_id, each.response)) for each in base.samples)
    told = build.replace(base, samples=samples)
    right = {name: sorted(Answers(told).right(name)) for name in base.scores.right}
    metrics = {f"exact_match,{name}": len(hits) / 300 for name, hits in right.items()}
    return build.replace(told, scores=base.scores.model_copy(update={"right": right, "metrics": metrics}))


def test_answers_that_lose_their_marker_are_format_drift(build):
    base, head = answering(build, {}), answering(build, dict.fromkeys(RIGHT[:20], "It is 18"))
    seen = format_drift(Answers(base), Answers(head))
    assert (seen.questions, seen.strict_only_lost, seen.strict_only_gained) == (300, 20, 0)
    assert seen.strict_only_p == exact_p(20, 0)
    strict = next(each for each in seen.invalid if each.filter == "strict-match")
    assert (strict.base, strict.head, strict.appeared, strict.vanished) == (0, 20, 20, 0)
    assert seen.drifted
    assert format_sentences(seen) == [
        "format drift: of the answers that flexible-extract finds right in both arms, 20 are no longer right under "
        "strict-match and 0 newly are: the form moved, not what is said",
        "format drift: strict-match finds no answer in 20 of 300 responses, 0 on base (p = 5.7e-06 after Holm)",
    ]


def test_it_stands_among_the_reasons_beside_the_verdict(build):
    head = answering(build, dict.fromkeys(RIGHT[:20], "It is 18"))
    lane = judge(build.run(build.evidence(build.lane(), answering(build, {}), head))).lanes[0]
    assert lane.verdict is Verdict.REGRESSED, "strict-match lost 20 of 300 all the same"
    assert lane.comparisons[1].verdict is Verdict.EQUIVALENT
    assert lane.format_drift.drifted
    assert sum(reason.startswith("format drift: ") for reason in lane.reasons) == 2


def test_answers_that_turn_wrong_in_the_same_form_are_none(build):
    head = answering(build, dict.fromkeys(RIGHT[:40], "17.\n#### 17"))
    seen = format_drift(Answers(answering(build, {})), Answers(head))
    assert (seen.strict_only_lost, seen.drifted, format_sentences(seen)) == (0, False, [])


def test_a_regained_form_is_format_drift_too(build):
    base = answering(build, dict.fromkeys(RIGHT[:20], "It is 18"))
    seen = format_drift(Answers(base), Answers(answering(build, {})))
    assert (seen.strict_only_lost, seen.strict_only_gained, seen.drifted) == (0, 20, True)


def test_silence_jumps_under_both_filters(build):
    head = answering(build, dict.fromkeys(range(15), "no number"))
    seen = format_drift(Answers(answering(build, {})), Answers(head))
    assert [(each.filter, each.head, each.appeared) for each in seen.invalid] == [
        ("strict-match", 15, 15), ("flexible-extract", 15, 15),
    ]  # fmt: skip
    assert (seen.strict_only_lost, seen.drifted, len(format_sentences(seen))) == (0, True, 2)


@pytest.mark.parametrize(("count", "drifted"), [(0, False), (8, False), (9, False), (10, True)])
def test_a_few_lost_markers_are_not_worth_a_remark(build, count, drifted):
    # Three tests at 1 %: nine of one side have p = 0.0039, times three 0.0117; ten 0.0059.
    head = answering(build, dict.fromkeys(RIGHT[:count], "It is 18"))
    assert format_drift(Answers(answering(build, {})), Answers(head)).drifted is drifted


def test_arms_without_a_common_question_say_nothing(build):
    base = build.evaluation(build.answers())
    halves = [Answers(build.replace(base, samples=part)) for part in (base.samples[:150], base.samples[150:])]
    assert format_drift(*halves) is None
