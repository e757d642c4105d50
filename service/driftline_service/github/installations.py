"""What follows when the App is removed, suspended or installed again, on an account or for some of its repositories.

GitHub shows nothing of ours there any more and gives no token, so what runs is stopped and nothing more is sent. What
stopped is not begun again by itself: days may have passed, and a word or a push does it.
"""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy.orm import Session

from driftline_service.database import github_queries
from driftline_service.database.github_tables import GithubDelivery
from driftline_service.github.events import InstallationEvent, InstallationRepositoriesEvent, NamedRepository
from driftline_service.runs.cancellation import cancel

ENDS = {"deleted": "the GitHub App was removed", "suspend": "the GitHub App was suspended"}
BEGINS = frozenset({"created", "unsuspend", "new_permissions_accepted"})
FEWER = "the GitHub App was removed from this repository"


def changed(
    session: Session, event: InstallationEvent | InstallationRepositoriesEvent, delivery: GithubDelivery, now: datetime
) -> str:
    """Stop or take up what the event is about; what was done, in words."""
    installation, before = event.installation.id, delivery.received_at
    if isinstance(event, InstallationEvent):
        if event.action in ENDS:
            return leave(session, installation, None, ENDS[event.action], before=before, now=now)
        if event.action in BEGINS:
            return _return(session, installation, _names(event.repositories))
        return "nothing to do"
    removed, added = _names(event.repositories_removed), _names(event.repositories_added)
    told = [leave(session, installation, removed, FEWER, before=before, now=now)] if removed else []
    told += [_return(session, installation, added)] if added else []
    return "; ".join(told) or "nothing to do"


def _names(repositories: Sequence[NamedRepository]) -> list[str]:
    return [one.full_name for one in repositories if one.full_name]


def leave(
    session: Session, installation: int, names: Sequence[str] | None, why: str, *, before: datetime, now: datetime
) -> str:
    """Stop everything of an installation, or of some of its repositories. What was told before and waits still would
    begin it anew."""
    stopped = 0
    for pull in github_queries.pulls_through(session, installation, names):
        ended = [cancel(session, run.id, why) for run in github_queries.unfinished_of(session, pull.id)]
        if any(ended):
            pull.notice = f"Stopped: {why}. `/driftline run` measures the head again."
        stopped += sum(ended)
        github_queries.show_no_more(session, pull, why)
    stopped += sum(cancel(session, run, why) for run in github_queries.main_runs_through(session, installation, names))
    dropped = github_queries.drop_waiting(session, installation, names, before=before, why=why, now=now)
    github_queries.forget_sources(session, installation, names)
    return f"{stopped} runs stopped, {dropped} deliveries dropped: {why}"


def _return(session: Session, installation: int, names: Sequence[str]) -> str:
    """Show the present again. A new installation has an id of its own, through which its repositories are reached now."""
    pulls = github_queries.take_over(session, installation, names)
    return f"{pulls} pull requests are shown again"
