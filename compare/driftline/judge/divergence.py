"""How far two evaluations part below the score: tokens that moved, texts that differ, and where they first do."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from driftline.contracts.beside import Distribution, Divergence, NoiseFloor
from driftline.judge.answers import Answers, paired_logprobs
from driftline.judge.first_difference import first_different_word
from driftline.statistics.equivalence import INTERVAL_LEVEL
from driftline.statistics.proportion import exact_share

MOVED_NATS: Final = 1e-3
"""A clean float32 run in other chunks moves no token by as much; a kernel bug moves most (docs/statistics.md)."""

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Parting:
    """Two evaluations question by question."""

    questions: tuple[int, ...]
    """those that both answered"""
    forced: frozenset[int]
    """those with log-probabilities of equally many tokens on both sides, answered or not"""
    first_tokens: dict[int, int]
    """moved question -> index of its first teacher-forced token that moved"""
    first_words: dict[int, int]
    """question whose responses differ -> index of the first word in which they do"""
    largest_move: float
    """nats"""


def parting(base: Answers, head: Answers) -> Parting:
    """Where each question that both answered, or were asked for its tokens alone, first parts."""
    shared = sorted(base.by_doc.keys() & head.by_doc.keys())
    words = {}
    for doc_id in shared:
        one, other = base.by_doc[doc_id].response, head.by_doc[doc_id].response
        if one != other:
            # Responses that differ in white space alone part where the shorter ends.
            word = first_different_word(one, other)
            words[doc_id] = len(one.split()) if word is None else word
    forced, tokens, largest = set(), {}, 0.0
    for doc_id in base.forced.keys() & head.forced.keys():
        if (pair := paired_logprobs(base.forced[doc_id], head.forced[doc_id])) is None:
            continue
        forced.add(doc_id)
        moves = np.abs(pair[1] - pair[0])
        largest = max(largest, float(moves.max()))
        if moves.max() > MOVED_NATS:
            tokens[doc_id] = int(np.argmax(moves > MOVED_NATS))
    return Parting(tuple(shared), frozenset(forced), tokens, words, largest)


def divergence(base: Answers, head: Answers, noise: NoiseFloor | None = None) -> Divergence:
    """Over the questions that both arms answered, against the lane's A/A pairs where there are any."""
    seen = parting(base, head)
    tokens = distribution(list(seen.first_tokens.values()))
    text_interval = _share(len(seen.first_words), len(seen.questions))
    moved_interval = _share(len(seen.first_tokens), len(seen.forced))
    return Divergence(
        questions=len(seen.questions), moved_questions=len(seen.first_tokens), largest_move=seen.largest_move,
        text_diverged=len(seen.first_words), first_divergent_token=None if tokens is None else tokens.median,
        forced_questions=len(seen.forced), first_tokens=tokens,
        first_words=distribution(list(seen.first_words.values())), text_interval=text_interval,
        moved_interval=moved_interval,
        text_beyond_noise=_beyond(text_interval, noise.text_interval if noise else None),
        moved_beyond_noise=_beyond(moved_interval, noise.moved_interval if noise else None),
    )  # fmt: skip


def distribution(places: Sequence[int]) -> Distribution | None:
    """Quartiles that occurred, not means of two; None of nothing."""
    if not places:
        return None
    lowest, lower, median, upper, highest = (
        int(place) for place in np.quantile(places, (0, 0.25, 0.5, 0.75, 1), method="inverted_cdf")
    )
    return Distribution(
        questions=len(places), lowest=lowest, lower_quartile=lower, median=median, upper_quartile=upper, highest=highest
    )


def _share(hits: int, trials: int) -> Interval | None:
    return exact_share(hits, trials, level=INTERVAL_LEVEL) if trials else None


def _beyond(arms: Interval | None, noise: Interval | None) -> bool | None:
    """Whether the arms' interval lies wholly above the noise floor's; None where either is unknown."""
    return None if arms is None or noise is None else arms[0] > noise[1]
