"""Named queries on what GitHub told and was shown."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from sqlalchemy import Text, cast, or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from driftline_service.database.github_tables import GithubDelivery, GithubPull, GithubRun, GithubSource
from driftline_service.database.run_tables import Run

MOST_TRIES = 5
"""A delivery that failed so often is left as it is, with its error; nothing else waits for it."""


def remember_source(session: Session, *, url: str, repository: str, installation_id: int, private: bool) -> None:
    """Note through which installation a repository is read; the latest word counts."""
    values = {"repository": repository, "installation_id": installation_id, "private": private}
    statement = insert(GithubSource).values(url=url, **values)
    session.execute(statement.on_conflict_do_update(index_elements=[GithubSource.url], set_=values))


def private_source(session: Session, url: str) -> GithubSource | None:
    """How the private repository at `url` is read; None of a public or unknown one."""
    found = session.get(GithubSource, url)
    return found if found is not None and found.private else None


def next_delivery(session: Session) -> GithubDelivery | None:
    """The oldest that waits, locked; failed ones come after the others."""
    query = select(GithubDelivery).where(GithubDelivery.handled_at.is_(None), GithubDelivery.tries < MOST_TRIES)
    query = query.order_by(GithubDelivery.tries, GithubDelivery.received_at).limit(1)
    return session.scalar(query.with_for_update(skip_locked=True))


def pull_of(session: Session, repository: str, number: int) -> GithubPull | None:
    """The pull request, locked, so that two deliveries about it come one after the other."""
    query = select(GithubPull).where(GithubPull.repository == repository, GithubPull.number == number)
    return session.scalar(query.with_for_update())


def pull_of_check(session: Session, repository: str, check_run_id: int) -> GithubPull | None:
    query = select(GithubPull).join(GithubRun, GithubRun.pull_id == GithubPull.id)
    query = query.where(GithubPull.repository == repository, GithubRun.check_run_id == check_run_id)
    return session.scalar(query.with_for_update(of=GithubPull))


def runs_of(session: Session, pull_id: UUID) -> Sequence[Run]:
    """The pull request's runs, the latest first."""
    query = select(Run).join(GithubRun, GithubRun.run_id == Run.id).where(GithubRun.pull_id == pull_id)
    return session.scalars(query.order_by(Run.created_at.desc(), Run.id)).unique().all()


def unfinished_of(session: Session, pull_id: UUID) -> Sequence[Run]:
    return [run for run in runs_of(session, pull_id) if not run.state.finished]


def link(session: Session, pull_id: UUID, run_id: UUID) -> None:
    """Note that a run was made for a pull request, once."""
    session.execute(insert(GithubRun).values(run_id=run_id, pull_id=pull_id).on_conflict_do_nothing())


def linked(session: Session, run_id: UUID) -> GithubRun:
    return session.get_one(GithubRun, run_id)


def pulls_to_look_at(session: Session, now: datetime) -> Sequence[UUID]:
    """Pull requests of which GitHub does not show the present: something was handled, or a run's state changed."""
    moved = (
        select(GithubRun.pull_id)
        .join(Run, Run.id == GithubRun.run_id)
        .where(cast(Run.state, Text).is_distinct_from(GithubRun.shown_state))
    )
    due = or_(GithubPull.next_try_at.is_(None), GithubPull.next_try_at <= now)
    query = select(GithubPull.id).where(due, or_(GithubPull.look, GithubPull.id.in_(moved)))
    return session.scalars(query.order_by(GithubPull.created_at)).all()
