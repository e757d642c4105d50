"""A first hit is suspected until a fresh pair agrees: same lane, same cell, same direction."""

from uuid import UUID

import numpy as np
import pytest
from driftline.contracts.words import Confirmed, RunState, Verdict
from driftline.judge.confirmation import confirmation, wants_fresh_pair
from driftline.judge.noise import noise_floor
from driftline.judge.run import judge
from driftline.report.markdown import markdown

RIGHT = [index for index in range(300) if index % 3]


def evaluated(build, wrong=(), **given):
    return build.evaluation(build.answers(wrong=wrong), **given)


def judged(build, base, head, **given):
    return judge(build.run(build.evidence(build.lane(), base, head, **given)))


@pytest.mark.parametrize(
    ("lost", "gained", "confirmed", "why"),
    [
        (5, 0, Confirmed.YES, "a fresh pair agrees: strict-match regressed again (one-sided p = 0.031)"),
        (4, 0, Confirmed.NO, "a fresh pair does not agree on strict-match (one-sided p = 0.062)"),
        (0, 0, Confirmed.NO, "a fresh pair does not agree on strict-match (one-sided p = 1)"),
        (0, 30, Confirmed.NO, "a fresh pair does not agree on strict-match (one-sided p = 1)"),
    ],
)
def test_five_of_one_side_agree_and_four_do_not(build, lost, gained, confirmed, why):
    base, head = evaluated(build), evaluated(build, RIGHT[:30])
    fresh = (evaluated(build, RIGHT[lost : lost + gained]), evaluated(build, RIGHT[:lost]))
    lane = judged(build, base, head, fresh=fresh).lanes[0]
    assert (lane.verdict, lane.confirmed) == (Verdict.REGRESSED, confirmed)
    assert why in lane.reasons


def test_reports_say_suspected_or_confirmed(build):
    base, head = evaluated(build), evaluated(build, RIGHT[:30])
    assert "### canary V1: regressed, suspected, not confirmed" in markdown(judged(build, base, head))
    assert "### canary V1: regressed, confirmed\n" in markdown(judged(build, base, head, fresh=(base, head)))


def test_a_gain_is_confirmed_in_its_own_direction(build):
    base, head = evaluated(build, RIGHT[:30]), evaluated(build)
    assert judged(build, base, head, fresh=(base, head)).lanes[0].confirmed is Confirmed.YES
    assert judged(build, base, head, fresh=(head, base)).lanes[0].confirmed is Confirmed.NO


def test_a_logprob_hit_is_asked_of_logprobs(build):
    moved = np.random.default_rng(0).normal(-0.02, 0.05, 300)
    base, head = evaluated(build), evaluated(build, moved=moved)
    lane = judged(build, base, head, fresh=(base, head)).lanes[0]
    assert lane.confirmed is Confirmed.YES
    assert "a fresh pair agrees: log-probability regressed again (one-sided p = 0.0001)" in lane.reasons
    assert judged(build, base, head, fresh=(base, base)).lanes[0].confirmed is Confirmed.NO
    bare = build.replace(head, samples=tuple(build.replace(each, logprobs=None) for each in head.samples))
    lane = judged(build, base, head, fresh=(base, bare)).lanes[0]
    assert "the fresh pair confirms nothing: it has no log-probability" in lane.reasons


def test_only_the_leading_hit_is_asked_again(build):
    """Both exact_match cells and the logprob regressed; the fresh pair shows the logprob alone, which did not lead."""
    moved = np.where(np.arange(300) < 24, -0.05, 0.0)
    base, head = evaluated(build), evaluated(build, RIGHT[:40], moved=moved)
    fresh = (base, evaluated(build, moved=moved))
    lane = judged(build, base, head, fresh=fresh).lanes[0]
    assert [cell.verdict for cell in lane.comparisons] == [Verdict.REGRESSED] * 3
    assert lane.confirmed is Confirmed.NO


@pytest.mark.parametrize("fault", ["cached base", "another key", "answers missing"])
def test_a_fresh_pair_that_is_not_fresh_or_not_fit_confirms_nothing(build, fault):
    base, head = evaluated(build), evaluated(build, RIGHT[:30])
    unfit, why = {
        "cached base": (build.replace(base, reused_from=UUID(int=7)), "its base was not measured anew"),
        "another key": (build.replace(base, must_match={"gpu_type": "H100"}), "the arms differ in gpu_type"),
        "answers missing": (build.replace(base, samples=base.samples[:200]), "base: 100 answers missing"),
    }[fault]
    lane = judged(build, base, head, fresh=(unfit, head)).lanes[0]
    assert lane.confirmed is Confirmed.NO
    assert any(reason.startswith(f"the fresh pair confirms nothing: {why}") for reason in lane.reasons)


def test_without_a_hit_or_a_fresh_pair_there_is_nothing_to_confirm(build):
    base, head = evaluated(build), evaluated(build, RIGHT[:30])
    assert judged(build, base, head).lanes[0].confirmed is Confirmed.NO
    assert confirmation(build.evidence(build.lane(), base, base, fresh=(base, head)), ()) == (Confirmed.NO, None)


def test_a_bit_identical_lane_needs_none(build):
    base, head = evaluated(build), evaluated(build, RIGHT[:30])
    lane = judged(build, base, head, noise=noise_floor([(base, base)])).lanes[0]
    assert lane.confirmed is Confirmed.NOT_NEEDED


def test_a_fresh_pair_that_was_measured_is_heard_even_so(build):
    """It is itself a pair of evaluations of one commit: a lane's first may well be bit for bit identical."""
    base, head = evaluated(build), evaluated(build, RIGHT[:30])
    noise = noise_floor([(base, base)])
    assert judged(build, base, head, noise=noise, fresh=(base, head)).lanes[0].confirmed is Confirmed.YES
    assert judged(build, base, head, noise=noise, fresh=(base, base)).lanes[0].confirmed is Confirmed.NO


def test_only_a_first_hit_of_a_lane_that_wants_it_is_measured_again(build):
    base, head = evaluated(build), evaluated(build, RIGHT[:30])
    for given, lane, wanted in [
        ({}, build.lane(), True),
        ({}, build.lane().model_copy(update={"confirm": False}), False),
        ({"fresh": (base, head)}, build.lane(), False),
        ({"unfresh": "a fresh pair is being measured"}, build.lane(), False),
        ({"noise": noise_floor([(base, base)])}, build.lane(), False),
    ]:
        evidence = build.evidence(lane, base, head, **given)
        view = judge(build.run(evidence)).lanes[0]
        assert wants_fresh_pair(evidence, view) is wanted, given
    quiet = build.evidence(build.lane(), base, base)
    assert not wants_fresh_pair(quiet, judge(build.run(quiet)).lanes[0])


def test_a_fresh_pair_that_is_not_there_is_told(build):
    base, head = evaluated(build), evaluated(build, RIGHT[:30])
    run = build.run(
        build.evidence(build.lane(), base, head, unfresh="a fresh pair is being measured"), state=RunState.EVALUATING
    )
    view = judge(run)
    assert "suspected: a fresh pair is being measured" in view.lanes[0].reasons
    assert (view.headline.color, view.headline.sentence.split(".")[0]) == (
        "grey", "Suspected: Accuracy regressed on canary V1",
    )  # fmt: skip
    quiet = build.evidence(build.lane(), base, base, unfresh="a fresh pair is being measured")
    view = judge(build.run(quiet, state=RunState.EVALUATING))
    assert view.headline.sentence.startswith("Accuracy is equivalent"), "repeats are planned before any hit"
    assert not any(reason.startswith("suspected") for reason in view.lanes[0].reasons)


def test_the_fresh_pair_is_part_of_what_a_verdict_was_made_from(build):
    base, head = evaluated(build), evaluated(build, RIGHT[:30])
    hashes = {judged(build, base, head, fresh=fresh).inputs_hash for fresh in (None, (base, base), (base, head))}
    assert len(hashes) == 3
