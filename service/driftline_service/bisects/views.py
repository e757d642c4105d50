"""A search's rows as page, API and command line show them."""

from uuid import UUID

from driftline.contracts.bisect import BisectStepView, BisectView
from driftline.contracts.lane import Lane
from driftline.contracts.words import Verdict
from sqlalchemy.orm import Session

from driftline_service.bisects.search import known_of, range_of
from driftline_service.bisects.stepping import commits_of, good_of
from driftline_service.database import bisect_queries
from driftline_service.database.tables import Bisect
from driftline_service.intake.refusal import Refusal


def bisect_view(session: Session, bisect_id: UUID, public_url: str) -> BisectView:
    """One search as it stands.

    Raises:
        Refusal: unknown_bisect.
    """
    bisect = session.get(Bisect, bisect_id)
    if bisect is None:
        raise Refusal("unknown_bisect", f"there is no bisect {bisect_id}; GET /api/v1/bisects lists them", status=404)
    return view_of(session, bisect, public_url)


def view_of(session: Session, bisect: Bisect, public_url: str) -> BisectView:
    """As `bisect_view`, from its row."""
    good, commits = good_of(bisect), commits_of(bisect)
    subjects = {commit.sha: commit.subject for commit in commits}
    runs = bisect_queries.runs_of(session, bisect.id)
    asked = bisect_queries.questions_asked(session, bisect.id)
    steps = bisect_queries.steps_of(session, bisect.id)
    left = range_of(known_of(good, commits, {each.sha: each.outcome for each in steps if each.outcome is not None}))
    views = [
        BisectStepView(
            number=each.number, sha=each.sha, subject=subjects[each.sha], run_id=each.run_id,
            run_state=runs[each.run_id].state, verdict=_verdict(runs[each.run_id].verdict), outcome=each.outcome,
            why=each.why, questions=asked.get(each.run_id, 0),
        )
        for each in steps
    ]  # fmt: skip
    return BisectView(
        bisect_id=bisect.id, url=f"{public_url.rstrip('/')}/bisects/{bisect.id}", repository=bisect.repository.url,
        lane=Lane.model_validate(bisect.lane).name, good=good.sha, bad=commits[-1].sha, margin=bisect.margin,
        state=bisect.state, first_bad=bisect.first_bad_sha,
        first_bad_subject=None if bisect.first_bad_sha is None else subjects[bisect.first_bad_sha],
        message=bisect.message, commits=len(commits), remaining=left.bad - left.good,
        questions=sum(each.questions for each in views), steps=views, created_by=bisect.created_by,
        created_at=bisect.created_at, finished_at=bisect.finished_at,
    )  # fmt: skip


def _verdict(stored: str | None) -> Verdict | None:
    return None if stored is None else Verdict(stored)
