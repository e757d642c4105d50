"""E-processes: evidence on paired answers that may be looked at as often as one likes.

Under its hypothesis an e-process has expectation at most 1 whenever it is looked at, so the chance that it ever reaches
1/α is at most α (Ville 1939), whatever rule says when to stop. All values here are natural logarithms: e-values of a
thousand pairs do not fit a float. `lost` and `gained` are discordant pairs among the first `n` questions; the order in
which they came does not matter.
"""

import math
from typing import Final

LOSSES_WEIGHT: Final = 0.9
"""Of the bet on changed answers that goes on losses. Stopping early serves drops; gains can wait for all questions."""

LOSS_PRIOR: Final = (6.0, 2.0)
"""Beta prior of the share of losses among discordant pairs, mean 3/4: a 3-point drop at 6 % discordance. The mirrored
prior bets on gains."""

STAKES: Final = (0.3, 0.5, 0.7, 0.9)
"""Shares of its capital that a bettor on the difference puts at risk a question, equally weighted. The best share is
near margin / discordant share, so these serve 2 % to 8 % at a margin of 2.5 points, and 0.9 serves no flips at all."""


def log_e_no_drift(lost: int, gained: int) -> float:
    """Evidence against "a changed answer is as likely lost as gained".

    The beta mixture of likelihood ratios over the share of losses. Source: Robbins 1970 (Ann. Math. Stat. 41, 1397);
    as a test martingale Grünwald, de Heide and Koolen 2024 (J. R. Stat. Soc. B 86, 1091).

    Raises:
        ValueError: if a count is negative.
    """
    if lost < 0 or gained < 0:
        raise ValueError(f"counts of pairs cannot be negative: lost {lost}, gained {gained}")
    a, b = LOSS_PRIOR
    fair = (lost + gained) * math.log(2)
    losses = math.log(LOSSES_WEIGHT) + _log_beta(a + lost, b + gained) - _log_beta(a, b)
    gains = math.log(1 - LOSSES_WEIGHT) + _log_beta(b + lost, a + gained) - _log_beta(a, b)
    return fair + _log_sum((losses, gains))


def log_e_above(lost: int, gained: int, n: int, *, bound: float) -> float:
    """Evidence against "the expected difference head − base of a question is at most `bound`", a fraction.

    The mixture of the capitals of bettors with fixed stakes; a bettor's stake is chosen so that nothing is owed.
    Source: Waudby-Smith and Ramdas 2024 (J. R. Stat. Soc. B 86, 1), on (difference + 1) / 2, which lies in [0, 1]; for
    bounded means no e-process does better in every direction (Larsson, Ramdas and Ruf 2025, Ann. Stat. 53, 1268).

    Raises:
        ValueError: if the counts do not fit `n`, or `bound` is not between −1 and 1.
    """
    if min(lost, gained) < 0 or n < lost + gained:
        raise ValueError(f"{lost} lost and {gained} gained do not fit {n} questions")
    if not -1 < bound < 1:
        raise ValueError(f"a difference of shares lies between -1 and 1, not at {bound}")
    same = n - lost - gained
    capitals = [
        same * math.log1p(stake * (1 / (1 + bound) - 1))
        + gained * math.log1p(stake * (2 / (1 + bound) - 1))
        + lost * math.log1p(-stake)
        for stake in STAKES
    ]
    return _log_sum(capitals) - math.log(len(STAKES))


def log_e_inside(lost: int, gained: int, n: int, *, margin: float) -> float:
    """Evidence against "the difference is as large as the margin", the lesser of both directions."""
    drop = log_e_above(lost, gained, n, bound=-margin)
    return min(drop, log_e_above(gained, lost, n, bound=-margin))


def interval(lost: int, gained: int, n: int, *, alpha: float) -> tuple[float, float]:
    """All differences that are not rejected at `alpha` a side: it holds the expected difference at every look at once.

    Raises:
        ValueError: as `log_e_above`, and if `alpha` is not between 0 and 1.
    """
    if not 0 < alpha < 1:
        raise ValueError(f"an error rate lies between 0 and 1, not at {alpha}")
    return _lower(lost, gained, n, alpha), -_lower(gained, lost, n, alpha)


def _lower(lost: int, gained: int, n: int, alpha: float) -> float:
    """The largest bound that is rejected; −1 if none is. The evidence falls as the bound rises."""
    from scipy.optimize import brentq

    edge = 1e-9

    def too_little(bound: float) -> float:
        return log_e_above(lost, gained, n, bound=bound) + math.log(alpha)

    if too_little(edge - 1) < 0:
        return -1.0
    if too_little(1 - edge) > 0:
        return 1.0
    return float(brentq(too_little, edge - 1, 1 - edge, xtol=1e-9))


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)


def _log_sum(logs: tuple[float, ...] | list[float]) -> float:
    largest = max(logs)
    return largest + math.log(sum(math.exp(each - largest) for each in logs))
