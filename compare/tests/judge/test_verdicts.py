"""Rule 4 and the worst-of: known evidence, known verdict."""

import numpy as np
from driftline.contracts.words import Confirmed, FailureKind, RunState, Verdict
from driftline.evidence import ArmFailure
from driftline.judge.noise import noise_floor
from driftline.judge.run import judge
from driftline.report.markdown import markdown
from driftline.report.public import run_report

RIGHT = [index for index in range(300) if index % 3]


def cells(view, lane=0):
    return {(cell.metric.value, cell.filter): cell for cell in view.lanes[lane].comparisons}


def test_no_discordant_pair_in_300_is_equivalent(build):
    same = build.evaluation(build.answers())
    view = judge(build.run(build.evidence(build.lane(), same, same)))
    assert view.verdict is Verdict.EQUIVALENT
    assert view.headline.color == "green"
    strict = cells(view)["exact_match", "strict-match"]
    assert (strict.lost, strict.gained, strict.base, strict.head) == (0, 0, 200 / 300, 200 / 300)
    assert strict.interval is not None
    assert abs(strict.interval[1] - (1 - 0.05 ** (1 / 300))) < 1e-9
    assert 0.02 < strict.smallest_visible_drop < 0.05
    logprob = cells(view)["logprob", "teacher-forced"]
    assert (logprob.p_value, logprob.interval, logprob.lost) == (1.0, (0.0, 0.0), None)


def test_no_discordant_pair_in_60_is_underpowered_and_says_what_would_settle_it(build):
    same = build.evaluation(build.answers(60))
    view = judge(build.run(build.evidence(build.lane(), same, same)))
    assert view.verdict is Verdict.UNDERPOWERED
    assert "about 119 questions would settle it" in view.lanes[0].reasons[0]
    assert view.headline.color == "neutral"


def test_a_drop_of_ten_points_is_regressed_and_red(build):
    base, head = build.evaluation(build.answers()), build.evaluation(build.answers(wrong=RIGHT[:30]))
    view = judge(build.run(build.evidence(build.lane(), base, head)))
    strict = cells(view)["exact_match", "strict-match"]
    assert (strict.lost, strict.gained, strict.verdict) == (30, 0, Verdict.REGRESSED)
    assert strict.p_adjusted == min(1.0, 3 * strict.p_value)
    assert view.verdict is Verdict.REGRESSED
    assert view.headline.color == "red"
    assert view.lanes[0].confirmed is Confirmed.NO
    assert view.lanes[0].changed_answers == 30


def test_a_gain_of_ten_points_is_improved(build):
    base, head = build.evaluation(build.answers(wrong=RIGHT[:30])), build.evaluation(build.answers())
    assert judge(build.run(build.evidence(build.lane(), base, head))).verdict is Verdict.IMPROVED


def test_a_logprob_drop_alone_is_regressed(build):
    moved = np.random.default_rng(0).normal(-0.02, 0.05, 300)
    base, head = build.evaluation(build.answers()), build.evaluation(build.answers(), moved=moved)
    view = judge(build.run(build.evidence(build.lane(), base, head)))
    assert cells(view)["exact_match", "strict-match"].verdict is Verdict.EQUIVALENT
    assert cells(view)["logprob", "teacher-forced"].verdict is Verdict.REGRESSED
    assert view.verdict is Verdict.REGRESSED
    assert view.lanes[0].divergence.moved_questions > 290


def test_a_tiny_significant_logprob_move_inside_the_margin_is_equivalent_and_told(build):
    moved = np.random.default_rng(0).normal(-0.0005, 0.0005, 300)
    base, head = build.evaluation(build.answers()), build.evaluation(build.answers(), moved=moved)
    view = judge(build.run(build.evidence(build.lane(), base, head)))
    assert view.verdict is Verdict.EQUIVALENT
    assert any("differs significantly" in reason for reason in view.lanes[0].reasons)


def test_holm_counts_the_cells_of_all_lanes_and_the_worst_lane_decides(build):
    base, head = build.evaluation(build.answers()), build.evaluation(build.answers(wrong=RIGHT[:30]))
    lanes = (build.evidence(build.lane("one"), base, base), build.evidence(build.lane("two"), base, head))
    view = judge(build.run(*lanes))
    strict = cells(view, 1)["exact_match", "strict-match"]
    assert strict.p_adjusted == min(1.0, 6 * strict.p_value)
    assert [lane.verdict for lane in view.lanes] == [Verdict.EQUIVALENT, Verdict.REGRESSED]


def test_a_failed_lane_keeps_its_place_among_the_tests(build):
    base, head = build.evaluation(build.answers()), build.evaluation(build.answers(wrong=RIGHT[:30]))
    failure = ArmFailure(FailureKind.LOST, "lease_expired", "the worker vanished", attempts=3)
    lanes = (build.evidence(build.lane("one"), base, head), build.evidence(build.lane("two"), base, failure))
    view = judge(build.run(*lanes))
    assert cells(view)["exact_match", "strict-match"].p_adjusted == min(
        1.0, 6 * cells(view)["exact_match", "strict-match"].p_value
    )
    assert view.lanes[1].verdict is Verdict.NOT_COMPARABLE
    assert not view.lanes[1].broken


def test_a_head_that_cannot_be_evaluated_is_broken_and_red(build):
    failure = ArmFailure(FailureKind.PERMANENT, "kernel_crashed", "IndexError")
    view = judge(build.run(build.evidence(build.lane(), build.evaluation(build.answers()), failure)))
    assert view.lanes[0].broken
    assert view.headline.color == "red"


def test_a_worker_without_the_model_breaks_no_commit(build):
    failure = ArmFailure(FailureKind.PERMANENT, "model_missing", "no canary/model on this worker")
    view = judge(build.run(build.evidence(build.lane(), build.evaluation(build.answers()), failure)))
    assert not view.lanes[0].broken
    assert (view.verdict, view.headline.color) == (Verdict.NOT_COMPARABLE, "neutral")


def test_a_mode_that_only_head_lacks_is_a_regression_and_one_that_both_lack_is_left_out(build):
    gone, same = ArmFailure(FailureKind.UNSUPPORTED, "no_v0", "V0 was removed"), build.evaluation(build.answers())
    lanes = (build.evidence(build.lane("lost"), same, gone), build.evidence(build.lane("never"), gone, gone))
    view = judge(build.run(*lanes))
    assert view.lanes[0].verdict is Verdict.REGRESSED
    assert view.lanes[0].reasons == ["lost mode V1: V0 was removed"]
    assert (view.lanes[1].verdict, view.lanes[1].unsupported) == (None, "V0 was removed")
    assert [lane.name for lane in run_report(view).lanes] == ["lost"]


def test_what_is_still_to_come_has_no_verdict(build):
    view = judge(
        build.run(build.evidence(build.lane(), build.evaluation(build.answers()), None), state=RunState.EVALUATING)
    )
    assert view.verdict is None
    assert view.headline.color == "grey"


def test_identical_arms_are_equivalent_without_a_test(build):
    view = judge(build.run(build.evidence(build.lane(), None, None, identical="the kernels are byte-identical")))
    assert view.verdict is Verdict.EQUIVALENT
    assert view.lanes[0].comparisons == []


def test_a_lane_that_cannot_see_the_change_is_not_green(build):
    view = judge(build.run(build.evidence(build.lane(), None, None, unreachable="only triton files changed")))
    assert view.verdict is Verdict.NOT_COMPARABLE
    assert view.headline.color == "neutral"


def test_a_bit_identical_noise_floor_needs_no_confirmation_and_an_unstable_one_blames_nobody(build):
    base, head = build.evaluation(build.answers()), build.evaluation(build.answers(wrong=RIGHT[:30]))
    quiet, loud = noise_floor([(base, base)]), noise_floor([(base, head)])
    assert (quiet.bit_identical, quiet.flips, quiet.unstable) == (True, 0, False)
    assert (loud.flips, loud.text_diverged, loud.unstable) == (30, 30, True)
    confirmed = judge(build.run(build.evidence(build.lane(), base, head, noise=quiet)))
    assert confirmed.lanes[0].confirmed is Confirmed.NOT_NEEDED
    blamed = judge(build.run(build.evidence(build.lane(), base, head, noise=loud)))
    assert blamed.lanes[0].verdict is Verdict.NOT_COMPARABLE
    assert blamed.lanes[0].unstable


def test_the_same_evidence_has_the_same_hash_and_another_answer_another(build):
    base, head = build.evaluation(build.answers()), build.evaluation(build.answers(wrong=RIGHT[:1]))
    one, again, other = (
        judge(build.run(build.evidence(build.lane(), base, arm))).inputs_hash for arm in (base, base, head)
    )
    assert one == again != other


def test_the_report_shows_both_tables_and_keeps_hostile_text_inert(build):
    base, head = build.evaluation(build.answers()), build.evaluation(build.answers(wrong=RIGHT[:30]))
    run = build.replace(
        build.run(build.evidence(build.lane(), base, head)), head_subject="a|b <script>\n# @everyone `x`"
    )
    text = markdown(judge(run))
    assert "|Tasks|Version|Filter|n-shot|Metric||Value||Stderr|" in text
    assert "|gsm8k_canary|1.0|flexible-extract|3|exact_match|↑|0.6667|±|0.0100|" in text
    assert "**regressed**" in text
    assert "V1 (hf: prefill in chunks of 64)" in text
    assert "a\\|b &lt;script&gt; \\# @\u200beveryone \\`x\\`" in text
    assert "<script>" not in text
