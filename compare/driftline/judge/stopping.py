"""When a lane may stop asking: what its pairs say after each block, and why that is enough (design 6.8).

What is spent (docs/early_stopping.md): the e-processes of all lanes together 0.01, the tests on all questions 0.04. A lane
stops by its own pairs alone, never by another lane's, so that lanes may run in any order.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import NormalDist
from typing import Final

from driftline.statistics.e_process import log_e_inside, log_e_no_drift

BLOCK: Final = 100
"""Questions between two looks."""

EARLY_ALPHA: Final = 0.01
"""Chance that any lane of a run without drift is ever stopped as moved."""

FULL_ALPHA: Final = 0.04
"""For the tests on all questions of a run in which a lane may stop early, after Holm."""

INSIDE_ALPHA: Final = 0.04
"""Of each of the two one-sided questions whether the difference is as large as the margin, at every look together."""

FULL_LEVEL: Final = 1 - 2 * FULL_ALPHA
"""Of the interval on all questions that must lie inside the margin."""

SETTLED: Final = 0.02
"""A result that all questions would bring with less probability than this is not waited for."""

_NORMAL = NormalDist()


class StopKind(StrEnum):
    REGRESSED = "regressed"
    IMPROVED = "improved"
    EQUIVALENT = "equivalent"
    FUTILE = "futile"


@dataclass(frozen=True, slots=True)
class Pairs:
    """One exact_match cell over the first `n` questions."""

    lost: int
    gained: int
    n: int


@dataclass(frozen=True, slots=True)
class Plan:
    """What a lane was planned to be before anything was looked at."""

    questions: int
    """all that the lane asks"""
    margin: float
    lanes: int
    """lanes of the run that may stop early; they share what is spent"""


@dataclass(frozen=True, slots=True)
class Stop:
    """Why a lane asks no further question, and after which."""

    kind: StopKind
    after: int
    sentence: str
    log_e: float
    """of the evidence that decided; of futility the greatest there was"""


def looks(plan: Plan) -> range:
    """The numbers of questions after which a lane is looked at; all questions are no look but the end."""
    return range(BLOCK, plan.questions, BLOCK)


def first_stop(seen: Iterable[Sequence[Pairs]], plan: Plan) -> Stop | None:
    """The first look that decides. `seen` holds every cell's pairs look by look; later looks are not read."""
    return next((stop for cells in seen if (stop := look(cells, plan)) is not None), None)


def look(cells: Sequence[Pairs], plan: Plan) -> Stop | None:
    """One look at a lane's exact_match cells: equivalent before moved, as on all questions; None to go on.

    Raises:
        ValueError: if there is no cell, or the cells were not asked equally many questions.
    """
    sizes = {each.n for each in cells}
    if len(sizes) != 1:
        raise ValueError(f"a look needs cells of one and the same number of questions, got {sorted(sizes)}")
    return _equivalent(cells, plan) or _moved(cells, plan) or _futile(cells, plan)


def _equivalent(cells: Sequence[Pairs], plan: Plan) -> Stop | None:
    """Every cell's difference is inside the margin: all must be, so nothing is adjusted."""
    least = min(log_e_inside(each.lost, each.gained, each.n, margin=plan.margin) for each in cells)
    if least < -math.log(INSIDE_ALPHA):
        return None
    told = f"a difference of {100 * plan.margin:.1f} points or more is ruled out either way (e = {_shown(least)})"
    return Stop(StopKind.EQUIVALENT, cells[0].n, _sentence(cells[0].n, plan, told), least)


def _moved(cells: Sequence[Pairs], plan: Plan) -> Stop | None:
    """The cells' mean e-value reaches the lane's threshold, and all questions would hardly show it inside the margin."""
    log_e = lane_log_e(cells)
    if log_e < math.log(plan.lanes / EARLY_ALPHA) or max(_chance_inside(each, plan) for each in cells) > SETTLED:
        return None
    largest = max(cells, key=lambda each: abs(each.lost - each.gained))
    kind = StopKind.REGRESSED if largest.lost > largest.gained else StopKind.IMPROVED
    told = f"{largest.lost} answers lost and {largest.gained} gained are no chance (e = {_shown(log_e)})"
    return Stop(kind, cells[0].n, _sentence(cells[0].n, plan, told), log_e)


def lane_log_e(cells: Sequence[Pairs]) -> float:
    """The mean of the cells' e-values, which is an e-value however the cells hang together.

    Source: Vovk and Wang 2021 (Ann. Stat. 49, 1736).
    """
    logs = [log_e_no_drift(each.lost, each.gained) for each in cells]
    largest = max(logs)
    return largest + math.log(sum(math.exp(each - largest) for each in logs) / len(logs))


def _futile(cells: Sequence[Pairs], plan: Plan) -> Stop | None:
    """All questions would show neither a difference nor its absence. It ends a lane as underpowered, so no error is
    spent on it."""
    if any(_chance_significant(each, plan) > SETTLED for each in cells):
        return None
    if min(_chance_inside(each, plan) for each in cells) > SETTLED:
        return None
    told = f"all {plan.questions} would settle nothing either, at the rate at which answers change"
    return Stop(StopKind.FUTILE, cells[0].n, _sentence(cells[0].n, plan, told), lane_log_e(cells))


def _chance_inside(seen: Pairs, plan: Plan) -> float:
    """Predictive probability that the interval on all questions lies inside the margin."""
    z = _NORMAL.inv_cdf((1 + FULL_LEVEL) / 2)
    final, deviation = _final(seen, plan)
    room = plan.questions * plan.margin - z * deviation
    return max(0.0, final.cdf(room) - final.cdf(-room)) if room > 0 else 0.0


def _chance_significant(seen: Pairs, plan: Plan) -> float:
    """Predictive probability that the test on all questions rejects; Holm only makes it less."""
    final, deviation = _final(seen, plan)
    needed = _NORMAL.inv_cdf(1 - FULL_ALPHA / 2) * deviation
    return 1 - (final.cdf(needed) - final.cdf(-needed))


def _final(seen: Pairs, plan: Plan) -> tuple[NormalDist, float]:
    """Distribution of gained − lost over all questions given those asked, and its deviation under no drift.

    Normal approximation with a flat prior: what is to come varies as what was seen, and what was seen may be off.
    """
    share = (seen.lost + seen.gained + 1) / (seen.n + 2)
    rest = plan.questions - seen.n
    mean = (seen.gained - seen.lost) * plan.questions / seen.n
    spread = math.sqrt(share * rest * (1 + rest / seen.n))
    return NormalDist(mean, spread), math.sqrt(share * plan.questions)


def _sentence(after: int, plan: Plan, told: str) -> str:
    return f"stopped after {after} of {plan.questions} questions: {told}"


def _shown(log_e: float) -> str:
    return f"{math.exp(log_e):.3g}" if log_e < 12 else f"10^{log_e / math.log(10):.0f}"
