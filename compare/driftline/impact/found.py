"""What one layout's analysis is given and what it finds, before CI is asked about it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from driftline.contracts.impact import AffectedOperator, LaneReach, Touched
from driftline.contracts.lane import Lane

Texts = Callable[[Callable[[str], bool]], Mapping[str, str]]
"""Given which paths are wanted, path -> text."""


@dataclass(frozen=True, slots=True)
class Change:
    """Both trees as texts on demand, what differs, and the lanes that may look at it."""

    base: Texts
    head: Texts
    changed: Sequence[str]
    kernel_path: str
    lanes: Sequence[Lane]


@dataclass(frozen=True, slots=True)
class FoundModel:
    name: str
    architectures: tuple[str, ...]
    examples: frozenset[str]
    """hub ids that the repository's tests name for it"""
    lanes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    touched: Sequence[Touched]
    lanes: Sequence[LaneReach]
    models: Sequence[FoundModel] = ()
    operators: Sequence[AffectedOperator] = ()
    wide: Sequence[str] = ()
    unread: Sequence[str] = field(default=())
