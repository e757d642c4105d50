"""A judged run's failures at lines of the head commit, as GitHub shows them beside the code. Pure: view in, fields out.

Only what is known to lie at a line is annotated: a failed kernel-check case where its message names a file, else at the
changed definitions of the kernels.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from driftline.contracts.report import CaseView, RunView
from driftline.contracts.words import CaseKind, RunState

A_CALL = 50
"""GitHub takes so many annotations in one request, and adds those of later ones."""

MOST = 200
MOST_CASES = 10
LONGEST_MESSAGE = 3000
_PLACE = re.compile(r"""([\w./-]+\.py)(?:", line |:)(\d+)""")


class Place(NamedTuple):
    path: str
    line: int


def annotations(view: RunView) -> list[dict[str, Any]]:
    """Of a run that is done; [] before."""
    if view.state is not RunState.DONE:
        return []
    return list(_of_cases(view))[:MOST]


def _of_cases(view: RunView) -> Iterator[dict[str, Any]]:
    """One annotation a place, red if a case there passes on base."""
    failed = [case for case in view.kernel_check.cases if case.head_passed is False and case.kind is CaseKind.CONTRACT]
    at: dict[Place, list[CaseView]] = {}
    for case in failed:
        for place in _named_in(case.message, view) or _changed(view, case.backend):
            at.setdefault(place, []).append(case)
    for place, cases in sorted(at.items()):
        new = [case for case in cases if case.base_passed]
        known = [case for case in cases if not case.base_passed]
        title = f"{len(cases)} kernel-check case{'s fail' if len(cases) > 1 else ' fails'}"
        told = "\n".join(_told(case) for case in [*new, *known][:MOST_CASES])
        yield _annotation(place, "failure" if new else "warning", title, told)


def _named_in(message: str, view: RunView) -> Sequence[Place]:
    """The last changed file that a traceback names: the child sees the kernels under a path of its own."""
    paths = _touched(view)
    for name, line in reversed(_PLACE.findall(message)):
        fitting = [path for path in paths if f"/{name}".endswith("/" + "/".join(path.split("/")[-2:]))]
        if fitting:
            return [Place(fitting[0], int(line))]
    return []


def _changed(view: RunView, backend: str) -> list[Place]:
    """The first changed definition of each changed kernel file, of the case's own backend where there are any."""
    places = [
        Place(each.path, min(each.lines)) for each in (() if view.impact is None else view.impact.touched) if each.lines
    ]
    own = [place for place in places if f"/{backend}_backend/" in place.path]
    return own or [place for place in places if "_backend/" not in place.path]


def _touched(view: RunView) -> Mapping[str, None]:
    return dict.fromkeys(() if view.impact is None else (each.path for each in view.impact.touched))


def _told(case: CaseView) -> str:
    error = "no result" if case.head_error is None else f"error {case.head_error:.3g}, tolerance {case.tolerance:.3g}"
    base = {True: "passes on base", False: "fails on base too", None: "not known on base"}[case.base_passed]
    said = case.message.strip().splitlines()
    return f"{case.name} ({case.backend}): {error}; {base}" + (f"; {said[-1][:200]}" if said else "")


def _annotation(place: Place, level: str, title: str, message: str) -> dict[str, Any]:
    return {
        "path": place.path, "start_line": place.line, "end_line": place.line, "annotation_level": level,
        "title": title, "message": message[:LONGEST_MESSAGE],
    }  # fmt: skip
