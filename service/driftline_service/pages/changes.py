"""Which of a kernel's figures a commit changed, and in which direction."""

from dataclasses import dataclass

from driftline.contracts.report import BuildView

FIGURES = (("registers", "registers"), ("spills", "spills, bytes"), ("shared_memory", "shared memory, bytes"))


@dataclass(frozen=True, slots=True)
class Change:
    """One figure in both arms."""

    what: str
    base: int | None
    head: int | None

    @property
    def word(self) -> str:
        """`more`, `less`, or `gone` and `new` where one arm lacks it; empty if nothing changed."""
        if self.base == self.head:
            return ""
        if self.base is None:
            return "new"
        if self.head is None:
            return "gone"
        return "more" if self.head > self.base else "less"


def changes(build: BuildView) -> tuple[Change, ...]:
    """Registers, spills and shared memory of one kernel, in this order."""
    return tuple(
        Change(what, getattr(build, f"base_{field}"), getattr(build, f"head_{field}")) for field, what in FIGURES
    )


def is_changed(build: BuildView) -> bool:
    return any(change.word for change in changes(build)) or build.base_error != build.head_error
