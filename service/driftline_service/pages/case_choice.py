"""Which kernel check cases a page lists, and in which order."""

from collections.abc import Sequence
from dataclasses import dataclass

from driftline.contracts.report import CaseView


@dataclass(frozen=True, slots=True)
class CaseChoice:
    """The cases shown, failed ones first, and how many each link would show."""

    shown: tuple[CaseView, ...]
    failed_only: bool
    failed: int
    total: int


def case_choice(cases: Sequence[CaseView], *, failed_only: bool) -> CaseChoice:
    """Head's failures first, contract cases before those outside it, then by how much worse head is."""
    ordered = sorted(cases, key=_place)
    failed = tuple(case for case in ordered if is_failed(case))
    shown = failed if failed_only else tuple(ordered)
    return CaseChoice(shown, failed_only, len(failed), len(ordered))


def is_failed(case: CaseView) -> bool:
    return case.head_passed is False


def _place(case: CaseView) -> tuple[bool, bool, float, str]:
    return not is_failed(case), case.kind != "contract", -(case.ratio or 0.0), case.name
