"""Log-probabilities that are missing, cut or not finite: never green, and never left out of the comparison."""

import numpy as np
import pytest
from driftline.contracts.words import Metric, Verdict
from driftline.judge.run import judge


def judged(build, base, head):
    return judge(build.run(build.evidence(build.lane(), base, head)))


def logprob_cell(view):
    return next(cell for cell in view.lanes[0].comparisons if cell.metric is Metric.LOGPROB)


def with_logprobs(build, evaluation, count, logprobs):
    """The first `count` samples with other log-probabilities."""
    changed = tuple(build.replace(sample, logprobs=logprobs) for sample in evaluation.samples[:count])
    return build.replace(evaluation, samples=changed + evaluation.samples[count:])


@pytest.mark.parametrize("logprobs", [None, b"", b"abc", np.full(7, -0.5, "<f4").tobytes()])
def test_questions_without_a_pair_of_logprobs_leave_the_cell_unmeasured(build, logprobs):
    base = build.evaluation(build.answers())
    view = judged(build, base, with_logprobs(build, base, 2, logprobs))
    cell = logprob_cell(view)
    assert (cell.verdict, cell.n, cell.p_value, cell.smallest_visible_drop) == (Verdict.NOT_COMPARABLE, 0, None, None)
    assert view.verdict is Verdict.NOT_COMPARABLE
    assert view.headline.color == "neutral"
    assert any("log-probability: not measured" in reason for reason in view.lanes[0].reasons)


def test_one_question_of_300_without_logprobs_is_within_the_budget(build):
    base = build.evaluation(build.answers())
    view = judged(build, base, with_logprobs(build, base, 1, None))
    assert (logprob_cell(view).n, view.verdict) == (299, Verdict.EQUIVALENT)


def test_an_unmeasured_cell_does_not_hide_a_regression_and_keeps_its_place(build):
    base = build.evaluation(build.answers())
    lost = [index for index in range(300) if index % 3][:30]
    head = with_logprobs(build, build.evaluation(build.answers(wrong=lost)), 300, None)
    view = judged(build, base, head)
    assert view.verdict is Verdict.REGRESSED
    strict = view.lanes[0].comparisons[0]
    assert strict.p_adjusted == 3 * strict.p_value


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_a_kernel_that_gives_nan_is_regressed(build, bad):
    base = build.evaluation(build.answers())
    values = np.full(20, -0.5, "<f4")
    values[3] = bad
    view = judged(build, base, with_logprobs(build, base, 30, values.tobytes()))
    cell = logprob_cell(view)
    assert (cell.verdict, cell.n) == (Verdict.REGRESSED, 300)
    assert cell.head - cell.base == pytest.approx(-99.5 / 20 * 30 / 300)
    assert (view.lanes[0].divergence.moved_questions, view.lanes[0].divergence.first_divergent_token) == (30, 3)


def test_scores_that_lm_eval_never_told_are_refused(build):
    base = build.evaluation(build.answers())
    view = judged(build, base, build.replace(base, scores=None))
    assert view.lanes[0].reasons == ["head: lm-eval's own scores are missing, so nothing proves ours"]
    assert view.verdict is Verdict.NOT_COMPARABLE


def test_everything_that_decides_is_in_the_hash(build):
    base = build.evaluation(build.answers())
    cut = build.replace(base.samples[0], left_truncated=True)
    other_doc = build.replace(base.samples[0], doc_hash="0" * 64)
    told = base.scores.model_copy(update={"task_hash": "y"})
    heads = (
        base,
        build.replace(base, samples=(cut, *base.samples[1:])),
        build.replace(base, samples=(other_doc, *base.samples[1:])),
        build.replace(base, scores=told),
        with_logprobs(build, base, 1, None),
    )
    assert len({judged(build, base, head).inputs_hash for head in heads}) == len(heads)
