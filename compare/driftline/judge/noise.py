"""The noise floor: what differs between evaluations of one and the same commit (design 6.5)."""

from collections.abc import Collection, Sequence
from itertools import pairwise
from typing import Final

import numpy as np

from driftline.contracts.beside import NoiseFloor
from driftline.evidence import EvaluationEvidence
from driftline.judge.answers import FILTERS, Answers
from driftline.judge.divergence import distribution, parting
from driftline.statistics.equivalence import INTERVAL_LEVEL
from driftline.statistics.mcnemar import exact_p
from driftline.statistics.proportion import clustered_share

POOLED_ALPHA: Final = 0.001
ROW_ALPHA: Final = 0.01
"""Two A/A pairs in a row this unlikely are no accident either."""


def noise_floor(pairs: Sequence[tuple[EvaluationEvidence, EvaluationEvidence]]) -> NoiseFloor:
    """Flips and divergence over A/A pairs, in the order in which they were made, each with its own interval.

    Raises:
        ValueError: no pairs; an unmeasured floor is None, never a floor of 0.
    """
    if not pairs:
        raise ValueError("a noise floor needs at least one pair of evaluations of one commit")
    answers = [(Answers(one), Answers(other)) for one, other in pairs]
    partings = [parting(one, other) for one, other in answers]
    questions = [seen.questions for seen in partings]
    flipped = max((_flipped(name, answers) for name in FILTERS), key=_total)
    texts, moved = [seen.first_words.keys() for seen in partings], [seen.first_tokens.keys() for seen in partings]
    forced = [seen.forced for seen in partings]
    return NoiseFloor(
        pairs=len(pairs), questions=_total(questions), flips=_total(flipped), text_diverged=_total(texts),
        bit_identical=all(_identical(one, other) for one, other in answers), unstable=_unstable(answers),
        forced_questions=_total(forced), moved_questions=_total(moved), flip_interval=_interval(flipped, questions),
        text_interval=_interval(texts, questions), moved_interval=_interval(moved, forced),
        first_tokens=distribution([place for seen in partings for place in seen.first_tokens.values()]),
        first_words=distribution([place for seen in partings for place in seen.first_words.values()]),
    )  # fmt: skip


def _total(by_pair: Sequence[Collection[int]]) -> int:
    return sum(map(len, by_pair))


def _interval(hits: Sequence[Collection[int]], asked: Sequence[Collection[int]]) -> tuple[float, float] | None:
    """Of the share of questions hit, given the questions hit and asked in each pair."""
    questions = sorted(set().union(*asked))
    if not questions:
        return None
    hit, tried = (
        np.array([sum(question in pair for pair in by_pair) for question in questions], dtype=np.int64)
        for by_pair in (hits, asked)
    )
    return clustered_share(hit, tried, level=INTERVAL_LEVEL)


def _flipped(name: str, answers: Sequence[tuple[Answers, Answers]]) -> list[frozenset[int]]:
    """Questions of each pair whose correctness changed under a filter."""
    found = []
    for one, other in answers:
        shared = one.by_doc.keys() & other.by_doc.keys()
        found.append(frozenset(shared & (one.right(name) ^ other.right(name))))
    return found


def _lost_and_gained(name: str, one: Answers, other: Answers) -> tuple[int, int]:
    shared = one.by_doc.keys() & other.by_doc.keys()
    before, after = one.right(name) & shared, other.right(name) & shared
    return len(before - after), len(after - before)


def _identical(one: Answers, other: Answers) -> bool:
    return one.by_doc.keys() == other.by_doc.keys() and all(
        (sample.response, sample.logprobs) == (other.by_doc[doc_id].response, other.by_doc[doc_id].logprobs)
        for doc_id, sample in one.by_doc.items()
    )


def _unstable(answers: Sequence[tuple[Answers, Answers]]) -> bool:
    return any(differs_from_itself([_lost_and_gained(name, one, other) for one, other in answers]) for name in FILTERS)


def differs_from_itself(counts: Sequence[tuple[int, int]]) -> bool:
    """The rule for `unstable` on (lost, gained) of a lane's A/A pairs, in the order in which they were made."""
    lost, gained = (sum(side) for side in zip(*counts, strict=True))
    if exact_p(lost, gained) < POOLED_ALPHA:
        return True
    unlikely = [exact_p(*pair) < ROW_ALPHA for pair in counts]
    return any(first and second for first, second in pairwise(unlikely))
