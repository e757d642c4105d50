"""What stands in a job's way, gathered: one refusal names all of it, so that a person mends it in one go."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from driftline.contracts.words import FailureKind

from driftline_worker.ending import CannotRun

_T = TypeVar("_T")


class Faults:
    """Looks at one thing after another, whatever the first one says."""

    def __init__(self) -> None:
        self._found: list[CannotRun] = []

    def __bool__(self) -> bool:
        return bool(self._found)

    def add(self, found: Iterable[CannotRun]) -> None:
        self._found += found

    def check(self, look: Callable[[], _T]) -> _T | None:
        """What `look` gives, or None and one fault more."""
        try:
            return look()
        except CannotRun as fault:
            self._found.append(fault)
            return None

    def refuse(self) -> None:
        """Nothing, if nothing was found.

        Raises:
            CannotRun: with the kind and reason of the gravest, and the words of all.
        """
        if not self._found:
            return
        gravest = next((fault for fault in self._found if fault.kind is not FailureKind.TRANSIENT), self._found[0])
        if len(self._found) == 1:
            raise gravest
        told = "; ".join(f"({number}) {fault.reason}: {fault}" for number, fault in enumerate(self._found, 1))
        raise CannotRun(gravest.kind, gravest.reason, f"{len(self._found)} things are not ready: {told}")
