"""The noise floor: what differs between evaluations of one and the same commit (design 6.5)."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from driftline.contracts.report import NoiseFloor
from driftline.evidence import EvaluationEvidence
from driftline.judge.answers import FILTERS, Answers
from driftline.statistics.mcnemar import exact_p

POOLED_ALPHA: Final = 0.001
ROW_ALPHA: Final = 0.01
"""Two A/A pairs in a row this unlikely are no accident either."""


def noise_floor(pairs: Sequence[tuple[EvaluationEvidence, EvaluationEvidence]]) -> NoiseFloor:
    """Flips and divergence over A/A pairs, in the order in which they were made.

    Raises:
        ValueError: no pairs; an unmeasured floor is None, never a floor of 0.
    """
    if not pairs:
        raise ValueError("a noise floor needs at least one pair of evaluations of one commit")
    answers = [(Answers(one), Answers(other)) for one, other in pairs]
    per_pair = [max(_flips(name, one, other) for name in FILTERS) for one, other in answers]
    return NoiseFloor(
        pairs=len(pairs),
        questions=sum(len(_shared(one, other)) for one, other in answers),
        flips=sum(per_pair),
        text_diverged=sum(
            one.by_doc[doc_id].response != other.by_doc[doc_id].response
            for one, other in answers
            for doc_id in _shared(one, other)
        ),
        bit_identical=all(_identical(one, other) for one, other in answers),
        unstable=_unstable(answers),
    )


def _shared(one: Answers, other: Answers) -> list[int]:
    return sorted(one.by_doc.keys() & other.by_doc.keys())


def _flips(name: str, one: Answers, other: Answers) -> int:
    return sum(one.scored[doc_id][name].right != other.scored[doc_id][name].right for doc_id in _shared(one, other))


def _lost_and_gained(name: str, one: Answers, other: Answers) -> tuple[int, int]:
    shared = frozenset(_shared(one, other))
    before, after = one.right(name) & shared, other.right(name) & shared
    return len(before - after), len(after - before)


def _identical(one: Answers, other: Answers) -> bool:
    return one.by_doc.keys() == other.by_doc.keys() and all(
        (sample.response, sample.logprobs) == (other.by_doc[doc_id].response, other.by_doc[doc_id].logprobs)
        for doc_id, sample in one.by_doc.items()
    )


def _unstable(answers: Sequence[tuple[Answers, Answers]]) -> bool:
    for name in FILTERS:
        counts = [_lost_and_gained(name, one, other) for one, other in answers]
        if exact_p(sum(lost for lost, _ in counts), sum(gained for _, gained in counts)) < POOLED_ALPHA:
            return True
        unlikely = [exact_p(lost, gained) < ROW_ALPHA for lost, gained in counts]
        if any(first and second for first, second in pairwise(unlikely)):
            return True
    return False
