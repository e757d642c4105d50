"""Whether a first hit is confirmed by a fresh pair of evaluations (design 6.6).

It guards against an unlucky run, not against unlucky questions: the fresh pair answers the same ones.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeVar

import numpy as np

from driftline.contracts.cell import Comparison
from driftline.contracts.report import LaneView
from driftline.contracts.words import Arm, Confirmed, Metric, Verdict
from driftline.evidence import EvaluationEvidence, LaneEvidence
from driftline.judge.answers import Answers
from driftline.judge.cells import mean_logprobs
from driftline.judge.health import health
from driftline.judge.lane import refused
from driftline.statistics.mcnemar import one_sided_p
from driftline.statistics.permutation import one_sided_sign_flip_p

CONFIRMATION_ALPHA: Final = 0.05
"""One-sided: the direction is the first hit's, named before the fresh pair was looked at."""

FreshPair = tuple[EvaluationEvidence, EvaluationEvidence]
Side = TypeVar("Side")


class Confirmation(NamedTuple):
    """The word, and why in a sentence where a fresh pair was looked at."""

    confirmed: Confirmed
    sentence: str | None = None


def confirmation(lane: LaneEvidence, comparisons: Sequence[Comparison]) -> Confirmation:
    """What is known of a lane's hit, given its finished cells.

    Only the leading hit, the one with the smallest p-value, is looked at again: to try every cell until one agrees would
    confirm more than a twentieth of the false alarms.
    """
    hit = leading_hit(comparisons)
    if hit is not None and lane.fresh is not None:
        return _asked(hit, lane.fresh)
    if lane.noise is not None and lane.noise.bit_identical:
        return Confirmation(Confirmed.NOT_NEEDED)
    return Confirmation(Confirmed.NO, None if hit is None or lane.unfresh is None else f"suspected: {lane.unfresh}")


def wants_fresh_pair(lane: LaneEvidence, view: LaneView) -> bool:
    """Whether a judged lane has a first hit that is to be measured once more, and was not yet."""
    hit = view.verdict in (Verdict.REGRESSED, Verdict.IMPROVED) and leading_hit(view.comparisons) is not None
    asked = lane.fresh is not None or lane.unfresh is not None
    return lane.lane.confirm and hit and not asked and view.confirmed is Confirmed.NO


def _asked(hit: Comparison, fresh: FreshPair) -> Confirmation:
    """What the fresh pair says of the hit."""
    if why := _unfit(fresh):
        return Confirmation(Confirmed.NO, f"the fresh pair confirms nothing: {why}")
    name = hit.filter if hit.metric is Metric.EXACT_MATCH else "log-probability"
    p_value = fresh_p(hit, fresh)
    if p_value is None:
        return Confirmation(Confirmed.NO, f"the fresh pair confirms nothing: it has no {name}")
    if p_value <= CONFIRMATION_ALPHA:
        return Confirmation(
            Confirmed.YES, f"a fresh pair agrees: {name} {hit.verdict} again (one-sided p = {p_value:.2g})"
        )
    return Confirmation(Confirmed.NO, f"a fresh pair does not agree on {name} (one-sided p = {p_value:.2g})")


def leading_hit(comparisons: Sequence[Comparison]) -> Comparison | None:
    """The regressed cell with the smallest p-value; an improved one only if none regressed."""
    for verdict in (Verdict.REGRESSED, Verdict.IMPROVED):
        hits = [each for each in comparisons if each.verdict is verdict and each.p_value is not None]
        if hits:
            return min(hits, key=lambda each: each.p_value or 0.0)
    return None


def fresh_p(hit: Comparison, fresh: FreshPair) -> float | None:
    """One-sided p of the hit's cell in the fresh pair, towards the hit's direction; None if it lacks the cell."""
    base, head = Answers(fresh[0]), Answers(fresh[1])
    if hit.metric is Metric.LOGPROB:
        means = mean_logprobs(base, head, sorted(base.forced.keys() & head.forced.keys()))
        return None if means is None else one_sided_sign_flip_p(np.subtract(*_towards(hit, means)))
    shared = base.by_doc.keys() & head.by_doc.keys()
    right = (base.right(hit.filter).intersection(shared), head.right(hit.filter).intersection(shared))
    more, fewer = _towards(hit, right)
    return one_sided_p(len(more - fewer), len(fewer - more))


def _towards(hit: Comparison, arms: tuple[Side, Side]) -> tuple[Side, Side]:
    """First the arm that the hit says is better."""
    base, head = arms
    return (base, head) if hit.verdict is Verdict.REGRESSED else (head, base)


def _unfit(fresh: FreshPair) -> str | None:
    """Why a fresh pair must not be asked, or None: not fresh, or not fit to be compared at all."""
    if fresh[0].reused_from is not None or fresh[0].vouched is not None:
        return "its base was not measured anew"
    seen = [health(arm, one) for arm, one in zip(Arm, fresh, strict=True)]
    return next(refused(fresh, seen), None)
