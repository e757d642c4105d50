"""Where a function of one variable crosses zero.

SciPy has it too, but importing scipy.optimize takes longer than a whole comparison of two gsm8k evaluations.
"""

from collections.abc import Callable


def root(function: Callable[[float], float], low: float, high: float, *, xtol: float) -> float:
    """A zero of `function` between `low` and `high`, within `xtol`.

    Source: Chandrupatla 1997 (Advances in Engineering Software 28, 145): inverse quadratic interpolation where the last
    three points allow it, else bisection, so that the bracket always shrinks.

    Raises:
        ValueError: if the function has the same sign at both ends.
    """
    a, b = high, low
    at_a, at_b = function(a), function(b)
    if at_a == 0 or at_b == 0:
        return a if at_a == 0 else b
    if (at_a > 0) == (at_b > 0):
        raise ValueError(f"no sign change between {low} and {high}: {at_b} and {at_a}")
    step = 0.5
    while True:
        x = a + step * (b - a)
        at_x = function(x)
        if (at_x > 0) == (at_a > 0):
            c, at_c = a, at_a
        else:
            c, at_c, b, at_b = b, at_b, a, at_a
        a, at_a = x, at_x
        if at_a == 0 or abs(b - a) <= xtol:
            return a if abs(at_a) < abs(at_b) else b
        step = _step((a, at_a), (b, at_b), (c, at_c))
        least = 0.5 * xtol / abs(b - a)
        step = min(max(step, least), 1 - least)


_Point = tuple[float, float]


def _step(a: _Point, b: _Point, c: _Point) -> float:
    """How far to go from a to b."""
    (xa, fa), (xb, fb), (xc, fc) = a, b, c
    xi, phi = (xa - xb) / (xc - xb), (fa - fb) / (fc - fb)
    if phi * phi < xi and (1 - phi) ** 2 < 1 - xi:
        return fa / (fb - fa) * fc / (fb - fc) + (xc - xa) / (xb - xa) * fa / (fc - fa) * fb / (fc - fb)
    return 0.5
