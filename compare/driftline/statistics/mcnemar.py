"""McNemar's exact test of two paired 0/1 outcomes."""


def exact_p(lost: int, gained: int) -> float:
    """Two-sided p of `lost` against `gained` discordant pairs, each direction as likely as the other under the null.

    Source: McNemar 1947 (Psychometrika 12, 153) with the binomial tail in place of chi square; twice the smaller tail,
    at most 1. The sums are of whole numbers, so nothing is rounded but the last division.

    Raises:
        ValueError: if a count is negative.
    """
    return min(1.0, 2 * _tail(min(lost, gained), lost + gained))


def one_sided_p(towards: int, away: int) -> float:
    """P of at least as many pairs `towards` one direction, named before looking, against those `away` from it.

    Source: as `exact_p`, one tail. Without a discordant pair it is 1.

    Raises:
        ValueError: if a count is negative.
    """
    return _tail(away, towards + away)


def _tail(most: int, pairs: int) -> float:
    """P of at most `most` of `pairs` fair coins showing heads."""
    if not 0 <= most <= pairs:
        raise ValueError(f"counts of pairs cannot be negative: {most} and {pairs - most}")
    tail = ways = 1
    for k in range(most):
        ways = ways * (pairs - k) // (k + 1)
        tail += ways
    return tail / (1 << pairs)
