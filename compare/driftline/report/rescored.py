"""A rescore report as text for a terminal: means per filter, then every question that differs."""

from driftline.contracts.imports import RescoredAnswer, RescoredEvaluation, RescoredFilter, RescoreReport

MOST_ANSWERS = 200
"""Questions named of one evaluation; the JSON names all."""


def rescored_text(report: RescoreReport) -> str:
    """All evaluations, one after the other."""
    return "\n".join(line for evaluation in report.evaluations for line in _evaluation(evaluation))


def _evaluation(evaluation: RescoredEvaluation) -> list[str]:
    lines = [evaluation.name, *map(_filter, evaluation.filters)]
    lines += [f"  {name}: not rescored, driftline has no scoring for this filter" for name in evaluation.not_rescored]
    lines += map(_answer, evaluation.differences[:MOST_ANSWERS])
    more = len(evaluation.differences) - MOST_ANSWERS
    return [*lines, f"  and {more} more; --json names all"] if more > 0 else lines


def _filter(each: RescoredFilter) -> str:
    standing = "all the same" if not each.differences else f"{each.differences} differ"
    means = f"stored {each.stored_mean:.4f}, rescored {each.rescored_mean:.4f}"
    return f"  {each.filter}: {each.questions} questions, {means}: {standing}"


def _answer(each: RescoredAnswer) -> str:
    took = "" if each.stored_extracted is None else f", lm-eval took {each.stored_extracted!r}"
    return (
        f"  question {each.doc_id}, {each.filter}: stored {each.stored:g}, rescored {each.rescored:g}, "
        f"took {each.extracted!r}{took}"
    )
