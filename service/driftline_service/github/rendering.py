"""What GitHub is shown of a pull request: one comment, and one check run on the head commit. Pure: view in, fields out."""

from typing import Any, NamedTuple

from driftline.contracts.report import RunView
from driftline.contracts.words import RunState
from driftline.report.impact_text import impact_lines
from driftline.report.markdown import markdown

from driftline_service.github.outlook import Outlook
from driftline_service.pages.times import about

MARKER = "<!-- driftline -->"
"""Tells our comment from others; GitHub keeps it and shows it to nobody."""

MOST_CHARACTERS = 60_000
"""GitHub takes 65,536; a report that is longer is cut at a line and named as such."""

CHECK_NAME = "driftline"

CONCLUSIONS = {"green": "success", "red": "failure", "neutral": "neutral", "grey": "neutral"}
ENDED = {RunState.CANCELLED: "cancelled", RunState.SUPERSEDED: "skipped", RunState.FAILED: "neutral"}


class Standing(NamedTuple):
    """How the run shown stands to the pull request as it is now."""

    head: str
    base_ref: str
    kept: bool = False
    """the head has moved and its kernels have not"""
    conflicts: str = ""
    outlook: Outlook | None = None
    """of a run that is not finished"""


def comment(view: RunView | None, *, standing: Standing, notice: str, public_url: str) -> str:
    """The comment: what was refused or is waited for, then the latest run, and a word if it is of an older head."""
    parts = [MARKER]
    if notice:
        parts.append(notice)
    if view is not None:
        if view.head != standing.head:
            parts.append(_older(view, standing))
        if standing.conflicts:
            parts.append(
                f"_This branch conflicts with `{standing.base_ref}` ({standing.conflicts}): the head was tested alone, "
                "and what a merge would make of it is not known._"
            )
        parts += [_run(view, public_url, standing.outlook), *_impact_under_way(view)]
    return _fitting("\n\n".join(parts), public_url)


def _older(view: RunView, standing: Standing) -> str:
    now, then = standing.head[:10], view.head[:10]
    if standing.kept:
        return (
            f"_The head is `{now}` now, with the kernels of `{then}` byte for byte on both arms: its verdict stands._"
        )
    return f"_The head is `{now}` now; what follows is of `{then}`._"


def check_run(view: RunView, *, public_url: str, kept_for: str | None = None) -> dict[str, Any]:
    """Fields of the check run on the head commit. Missing data is never green: only a judged run concludes by colour."""
    fields: dict[str, Any] = {
        "name": CHECK_NAME, "head_sha": kept_for or view.head, "external_id": str(view.run_id),
        "details_url": f"{public_url}/runs/{view.run_id}",
        "output": {
            "title": view.headline.sentence[:250],
            "summary": _fitting(_kept(view, kept_for) + _summary(view), public_url),
        },
    }  # fmt: skip
    if not view.state.finished:
        return fields | {"status": "queued" if view.state is RunState.QUEUED else "in_progress"}
    conclusion = ENDED.get(view.state) or CONCLUSIONS[view.headline.color]
    return fields | {"status": "completed", "conclusion": conclusion}


def _kept(view: RunView, kept_for: str | None) -> str:
    return "" if kept_for is None else f"Measured on `{view.head[:10]}`, whose kernels are the same byte for byte.\n\n"


def _run(view: RunView, public_url: str, outlook: Outlook | None) -> str:
    address = f"{public_url}/runs/{view.run_id}"
    if view.state is RunState.DONE:
        return f"{markdown(view)}\n[The run]({address}) · [changed answers]({address}/samples)"
    left = "" if view.remaining_seconds is None else f", about {about(view.remaining_seconds)} left"
    return (
        f"**Driftline** compares `{view.head[:10]}` with `{view.base[:10]}` on {_lanes(view)}: {view.state}"
        f"{_place(view, outlook)}{left}. [Watch it]({address}){_visible(outlook)}{_so_far(view)}"
    )


def _place(view: RunView, outlook: Outlook | None) -> str:
    if view.state is not RunState.QUEUED or outlook is None:
        return ""
    return (
        f" behind {outlook.before} run{'s' if outlook.before > 1 else ''}" if outlook.before else ", the next in line"
    )


def _visible(outlook: Outlook | None) -> str:
    if outlook is None or outlook.visible is None:
        return ""
    drop = f"{100 * outlook.visible:.1f} points"
    return f"\n\nThe smallest visible drop is {drop}, found four times in five if no other answer changes."


def _impact_under_way(view: RunView) -> list[str]:
    """The report of a finished run holds it."""
    return [] if view.impact is None or view.state is RunState.DONE else list(impact_lines(view.impact))


def _so_far(view: RunView) -> str:
    """A first hit is worth knowing before its fresh pair is there, as long as it is told as suspected."""
    return "" if view.verdict is None or view.state.finished else f"\n\n{view.headline.sentence}"


def _summary(view: RunView) -> str:
    return markdown(view) if view.state is RunState.DONE else view.headline.sentence


def _lanes(view: RunView) -> str:
    return ", ".join(lane.name for lane in view.lanes) or "no lane"


def _fitting(text: str, public_url: str) -> str:
    if len(text) <= MOST_CHARACTERS:
        return text
    kept = text[:MOST_CHARACTERS].rsplit("\n", 1)[0]
    return f"{kept}\n\n_Cut here; the whole report is on {public_url}._"
