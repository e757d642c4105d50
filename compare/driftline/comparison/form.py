"""Format drift of two lm-eval outputs: the form of the answers moved, not what they say. A remark, never a verdict."""

from collections.abc import Iterator, Mapping

import numpy as np

from driftline.comparison.pairing import Pairs
from driftline.contracts.beside import InvalidAnswers
from driftline.contracts.compare import Problem
from driftline.judge.format_drift import FLEXIBLE, STRICT, drift_of, format_sentences, invalid_answers

METRIC = "exact_match"


def format_remarks(task: str, pairs: Mapping[str, Pairs]) -> Iterator[Problem]:
    """What moved in form alone, in words; nothing of a task whose answers kept theirs."""
    shared = min((each.doc_ids.size for each in pairs.values()), default=0)
    if not shared:
        return
    seen = drift_of(shared, _strict_only(pairs), [_invalid(name, each) for name, each in pairs.items()])
    for sentence in format_sentences(seen):
        yield Problem(code="format_drift", blocks=False, task=task, message=f"{task}: {sentence}")


def _strict_only(pairs: Mapping[str, Pairs]) -> tuple[int, int]:
    """Answers (lost, gained) under strict-match among those that flexible-extract finds right in both arms."""
    strict, flexible = pairs.get(STRICT), pairs.get(FLEXIBLE)
    if strict is None or flexible is None or any(METRIC not in each.metrics for each in (strict, flexible)):
        return 0, 0
    if not np.array_equal(strict.doc_ids, flexible.doc_ids):
        return 0, 0
    before, after = (each == 1 for each in strict.scores(METRIC))
    found_before, found_after = (each == 1 for each in flexible.scores(METRIC))
    substance = found_before & found_after
    return int((before & ~after & substance).sum()), int((~before & after & substance).sum())


def _invalid(name: str, pairs: Pairs) -> InvalidAnswers:
    before, after = (each == 1 for each in pairs.column("invalid"))
    counts = int(before.sum()), int(after.sum())
    return invalid_answers(name, counts, appeared=int((after & ~before).sum()), vanished=int((before & ~after).sum()))
