"""Holm's correction for several tests of one run."""

from collections.abc import Sequence


def adjusted(p_values: Sequence[float], planned: int) -> list[float]:
    """Adjusted p-values in the given order, for `planned` tests. Source: Holm 1979 (Scand. J. Statistics 6, 65).

    A test that was planned and could not be made keeps its place: it counts as one more p of 1.

    Raises:
        ValueError: if there are more p-values than planned tests.
    """
    if len(p_values) > planned:
        raise ValueError(f"{len(p_values)} p-values for {planned} planned tests: plan all tests before looking")
    result = [1.0] * len(p_values)
    largest = 0.0
    for place, index in enumerate(sorted(range(len(p_values)), key=lambda index: p_values[index])):
        largest = max(largest, min(1.0, (planned - place) * p_values[index]))
        result[index] = largest
    return result
