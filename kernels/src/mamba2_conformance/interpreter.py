"""Triton's interpreter, without three things that it does over and over for nothing. What a kernel computes is the same.

Triton 3.6 puts its own functions in the place of the language's at each launch, and again at each `@triton.jit` function
that the kernel calls: a fifth of the time of the whole check on a CPU. What is in its place already stays there. It writes
the name of every tuple's type, of shapes above all, which no interpreted kernel reads; and it makes the table of NumPy's
types anew for each look at it.
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
    """Have each launch patch the language once, name types of tuples when asked, and keep the table of NumPy's types. Each
    does nothing to a Triton that is built otherwise."""
    from triton import language
    from triton.runtime import interpreter

    patch = getattr(interpreter, "_patch_lang", None)
    if patch is not None and not isinstance(getattr(patch, "__self__", None), Launch):
        interpreter._patch_lang = Launch(patch).of
    _keep_dtypes(interpreter)
    _name_when_asked(language.core)


def _keep_dtypes(interpreter: Any) -> None:
    """`_get_np_dtype` by the name of the scalar type, on which alone its answer depends."""
    slow = getattr(interpreter, "_get_np_dtype", None)
    if slow is None or hasattr(slow, "slow"):
        return
    known: dict[str, Any] = {}

    def quick(dtype: Any) -> Any:
        name = dtype.scalar.name
        found = known.get(name)
        if found is None:
            found = known[name] = slow(dtype)
        return found

    quick.slow = slow  # type: ignore[attr-defined]
    interpreter._get_np_dtype = quick


def _name_when_asked(core: Any) -> None:
    """The `name` of `tuple_type`, put together from types and fields by who reads it."""
    kind = getattr(core, "tuple_type", None)
    if kind is None or hasattr(kind, "name") or set(vars(kind([]))) != {"types", "fields", "name"}:
        return

    def begin(self: Any, types: Any, fields: Any = None) -> None:
        self.types = types
        self.fields = fields or [""] * len(types)

    def name(self: Any) -> str:
        return "[" + ",".join(f"{field}:{one}" for field, one in zip(self.fields, self.types, strict=False)) + "]"

    kind.__init__, kind.name = begin, property(name)
