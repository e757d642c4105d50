"""Triton's interpreter, without the search through `triton.language` that it repeats at every call of a device function.

Triton 3.6 puts its own functions in the place of the language's at each launch, and again at each `@triton.jit` function
that the kernel calls: a fifth of the time of the whole check on a CPU. What is in its place already stays there.
"""

from collections.abc import Callable
from typing import Any, Protocol


class Scope(Protocol):
    def restore(self) -> None: ...


Patch = Callable[[Any], Scope]


class Launch:
    """What one launch has put in place, until it ends."""

    def __init__(self, patch: Patch) -> None:
        self._patch = patch
        self._seen: set[int] = set()

    def of(self, function: Any) -> Scope:
        """As Triton's `_patch_lang`. The launch itself asks first, and is the one to restore."""
        modules = {id(value) for value in languages_of(function)}
        if self._seen and modules <= self._seen:
            return NOTHING
        outermost = not self._seen
        scope = self._patch(function)
        self._seen |= modules
        return Restored(scope, self._seen) if outermost else scope


class Restored:
    """The launch's own scope: once it is restored nothing is in place any more."""

    def __init__(self, scope: Scope, seen: set[int]) -> None:
        self._scope = scope
        self._seen = seen

    def restore(self) -> None:
        self._seen.clear()
        self._scope.restore()


class Nothing:
    def restore(self) -> None:
        """Nothing was put in place."""


NOTHING = Nothing()


def languages_of(function: Any) -> list[Any]:
    """The modules of the language that a kernel's code sees: those in whose place the interpreter puts its own."""
    from triton import language

    return [value for value in function.__globals__.values() if value is language or value is language.core]


def quicken() -> None:
    """Have each launch patch the language once. Does nothing to a Triton whose interpreter is built otherwise."""
    from triton.runtime import interpreter

    patch = getattr(interpreter, "_patch_lang", None)
    if patch is not None and not isinstance(getattr(patch, "__self__", None), Launch):
        interpreter._patch_lang = Launch(patch).of
