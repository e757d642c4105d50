"""McNemar's exact test of two paired 0/1 outcomes."""


def exact_p(lost: int, gained: int) -> float:
    """Two-sided p of `lost` against `gained` discordant pairs, each direction as likely as the other under the null.

    Source: McNemar 1947 (Psychometrika 12, 153) with the binomial tail in place of chi square; twice the smaller tail,
    at most 1. The sums are of whole numbers, so nothing is rounded but the last division.

    Raises:
        ValueError: if a count is negative.
    """
    if lost < 0 or gained < 0:
        raise ValueError(f"counts of pairs cannot be negative: lost {lost}, gained {gained}")
    discordant = lost + gained
    tail = ways = 1
    for k in range(min(lost, gained)):
        ways = ways * (discordant - k) // (k + 1)
        tail += ways
    return min(1.0, 2 * tail / (1 << discordant))
