"""Which changed answers a page lists: one lane's or all, a handful at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from driftline.contracts.report import ChangedSample

PAGE = 20
"""answers; each takes half a screen"""


class OfALane(Protocol):
    """What is paged: an answer, or where one is."""

    @property
    def lane(self) -> str: ...


Answer = TypeVar("Answer", bound=OfALane)


@dataclass(frozen=True, slots=True)
class SamplesPage(Generic[Answer]):
    """A page of them. `counts` is per lane, of all; offsets are None where there is no such page."""

    shown: tuple[Answer, ...]
    lane: str
    counts: dict[str, int]
    total: int
    offset: int
    previous: int | None
    next: int | None


def samples_page(changed: Sequence[Answer], *, lanes: Sequence[str], lane: str, offset: int) -> SamplesPage[Answer]:
    """The answers from `offset` on; `lane` is empty for all lanes."""
    fitting = [sample for sample in changed if lane in ("", sample.lane)]
    counts = {name: sum(sample.lane == name for sample in changed) for name in lanes}
    start = min(offset, max(0, len(fitting) - 1)) // PAGE * PAGE
    return SamplesPage(
        shown=tuple(fitting[start : start + PAGE]), lane=lane, counts=counts, total=len(fitting), offset=start,
        previous=start - PAGE if start > 0 else None, next=start + PAGE if start + PAGE < len(fitting) else None,
    )  # fmt: skip


def moved_filters(sample: ChangedSample) -> list[tuple[str, str]]:
    """(filter, what became of it) for each filter: lost, gained, still right or still wrong."""
    names = {
        (True, False): "lost",
        (False, True): "gained",
        (True, True): "right in both",
        (False, False): "wrong in both",
    }
    both = sorted(sample.base_right.keys() | sample.head_right.keys())
    return [(name, names[sample.base_right.get(name, False), sample.head_right.get(name, False)]) for name in both]
