"""What a function of the commit under test takes, by which adapters tell one API from another."""

import inspect
from collections.abc import Callable


def parameters_of(function: Callable[..., object]) -> frozenset[str]:
    return frozenset(inspect.signature(function).parameters)
