"""The zero of a function, against zeros that are known and against SciPy's."""

import math

import pytest
from driftline.statistics.root import root
from scipy.optimize import brentq


@pytest.mark.parametrize(
    ("function", "low", "high", "zero"),
    [
        (lambda x: x * x - 2, 0.0, 2.0, math.sqrt(2)),
        (lambda x: 2 - x * x, 0.0, 2.0, math.sqrt(2)),
        (lambda x: x**9, -1.0, 1.5, 0.0),
        (lambda x: math.exp(-1e4 * x) - 0.5, 0.0, 1.0, math.log(2) / 1e4),
        (lambda x: -1.0 if x < 0.3 else 1.0, 0.0, 1.0, 0.3),
        (lambda x: x, 0.0, 1.0, 0.0),
        (lambda x: x - 1, 0.0, 1.0, 1.0),
    ],
)
def test_known_zeros(function, low, high, zero):
    assert root(function, low, high, xtol=1e-10) == pytest.approx(zero, abs=2e-10 if function(0.1) else 1e-9)


@pytest.mark.parametrize("shift", [0.001, 0.1, 0.37, 0.5, 0.93, 0.9999])
def test_equal_to_scipy(shift):
    def function(x):
        return math.tanh(7 * (x - shift)) + (x - shift) ** 3

    assert root(function, 0.0, 1.0, xtol=1e-12) == pytest.approx(brentq(function, 0.0, 1.0, xtol=1e-12), abs=2e-12)


def test_no_sign_change_is_refused():
    with pytest.raises(ValueError, match=r"no sign change between 1\.0 and 2\.0"):
        root(lambda x: x, 1.0, 2.0, xtol=1e-9)
