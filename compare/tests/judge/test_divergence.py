"""How far the arms part below the score, and whether the lane parts as far from itself."""

import numpy as np
import pytest
from driftline.contracts.words import Verdict
from driftline.evidence import ForcedEvidence
from driftline.judge.answers import Answers
from driftline.judge.divergence import distribution, divergence
from driftline.judge.noise import noise_floor
from driftline.judge.run import judge
from driftline.statistics.proportion import exact_share


def with_responses(build, evaluation, responses):
    """Another response for some questions."""
    samples = tuple(
        build.replace(sample, response=responses.get(sample.doc_id, sample.response)) for sample in evaluation.samples
    )
    return build.replace(evaluation, samples=samples)


def with_moves(build, evaluation, places):
    """One token of some questions moved by a hundredth of a nat, at the place told."""
    samples = []
    for sample in evaluation.samples:
        values = np.frombuffer(sample.logprobs, "<f4").copy()
        if sample.doc_id in places:
            values[places[sample.doc_id]] -= 0.01
        samples.append(build.replace(sample, logprobs=values.tobytes()))
    return build.replace(evaluation, samples=tuple(samples))


def test_shares_and_places_of_the_first_difference(build):
    base = build.evaluation(build.answers())
    words = {1: "so 18.\n#### 18", 2: "18.\n#### 18 and more", 4: "18. \n#### 18"}
    head = with_moves(build, with_responses(build, base, words), {0: 3, 1: 5, 2: 5, 7: 9, 8: 19})
    seen = divergence(Answers(base), Answers(head))
    assert (seen.questions, seen.text_diverged, seen.moved_questions, seen.forced_questions) == (300, 3, 5, 300)
    # "so" for "18." is word 0; "and" is word 3; white space alone parts after all three words.
    assert seen.first_words.model_dump() == {
        "questions": 3, "lowest": 0, "lower_quartile": 0, "median": 3, "upper_quartile": 3, "highest": 3,
    }  # fmt: skip
    assert seen.first_tokens.model_dump() == {
        "questions": 5, "lowest": 3, "lower_quartile": 5, "median": 5, "upper_quartile": 9, "highest": 19,
    }  # fmt: skip
    assert seen.first_divergent_token == 5
    assert seen.largest_move == pytest.approx(0.01, rel=1e-4)
    assert seen.text_interval == exact_share(3, 300, level=0.9)
    assert seen.moved_interval == exact_share(5, 300, level=0.9)
    assert (seen.text_beyond_noise, seen.moved_beyond_noise) == (None, None), "no floor was measured"


def test_no_question_parts(build):
    same = Answers(build.evaluation(build.answers()))
    seen = divergence(same, same)
    assert (seen.text_diverged, seen.moved_questions, seen.largest_move) == (0, 0, 0.0)
    assert (seen.first_words, seen.first_tokens, seen.first_divergent_token) == (None, None, None)


def test_without_logprobs_the_share_of_moved_questions_is_unknown_and_not_0(build):
    base = build.evaluation(build.answers())
    bare = build.replace(base, samples=tuple(build.replace(each, logprobs=None) for each in base.samples))
    seen = divergence(Answers(bare), Answers(bare))
    assert (seen.forced_questions, seen.moved_interval) == (0, None)
    floor = noise_floor([(bare, bare)])
    assert (floor.forced_questions, floor.moved_interval) == (0, None)


def test_questions_of_which_only_the_tokens_were_asked_count_for_tokens(build):
    base = build.evaluation(build.answers())
    head = with_moves(build, base, {0: 3, 299: 5})
    cut = [
        build.replace(arm, samples=arm.samples[:200], forced_only=tuple(
            ForcedEvidence(each.doc_id, each.logprobs) for each in arm.samples[200:]
        ))
        for arm in (base, head)
    ]  # fmt: skip
    seen = divergence(*map(Answers, cut))
    assert (seen.questions, seen.forced_questions, seen.moved_questions) == (200, 300, 2)


def test_an_unstable_lane_still_says_how_far_its_arms_part(build):
    base, head = build.evaluation(build.answers()), with_moves(build, build.evaluation(build.answers()), {0: 3})
    loud = noise_floor([(base, build.evaluation([not right for right in build.answers()]))])
    lane = judge(build.run(build.evidence(build.lane(), base, head, noise=loud))).lanes[0]
    assert (lane.unstable, lane.verdict) == (True, Verdict.NOT_COMPARABLE)
    assert (lane.divergence.moved_questions, lane.format_drift.drifted, lane.changed_answers) == (1, False, 0)


def test_more_than_the_lanes_own_noise_is_told_and_as_much_is_not(build):
    base = build.evaluation(build.answers())
    few, many = (dict.fromkeys(range(0, 3 * count, 3), "19.\n#### 19") for count in (12, 40))
    floor = noise_floor([(base, with_responses(build, base, few))])
    for responses, beyond in ((few, False), (many, True)):
        head = with_moves(build, with_responses(build, base, responses), {0: 0})
        seen = judge(build.run(build.evidence(build.lane(), base, head, noise=floor))).lanes[0].divergence
        assert (seen.text_beyond_noise, seen.moved_beyond_noise) == (beyond, False)


def test_the_quartiles_of_one_place_are_that_place():
    assert set(distribution([7]).model_dump().values()) == {1, 7}
    assert distribution([]) is None
