"""Equivalence: two one-sided tests, read off an interval."""

INTERVAL_LEVEL = 0.9
"""Two one-sided tests at 5 % are a 90 % interval."""


def within_margin(interval: tuple[float, float], margin: float) -> bool:
    """Whether the 90 % interval lies wholly inside (−margin, margin), that is, both one-sided tests at 5 % reject.

    Source: Schuirmann 1987 (J. Pharmacokinet. Biopharm. 15, 657).

    Raises:
        ValueError: if the margin is not positive.
    """
    if margin <= 0:
        raise ValueError(f"a margin must be positive, not {margin}: nothing is equivalent within it")
    low, high = interval
    return -margin < low and high < margin
