"""Named queries on what GitHub told and was shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import ceil, sqrt
from uuid import UUID

from sqlalchemy import ColumnElement, Text, cast, delete, false, func, or_, select, tuple_, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session, aliased

from driftline_service.database.github_tables import GithubDelivery, GithubPull, GithubRun, GithubSource
from driftline_service.database.run_queries import ACTIVE
from driftline_service.database.run_tables import Repository, Run
from driftline_service.runs.priority import MAIN_KEY

AGAIN = timedelta(seconds=5)
"""A delivery that failed n times is due n * n of these after it came: soon at first, after a day every 22 minutes. So no
time of its next try is kept."""

MOST_TRIES = 132
"""A delivery that failed so often, which takes a day, is left as it is, with its error; nothing else waits for it."""


@dataclass(frozen=True, slots=True)
class Place:
    """A repository, as an installation of the App reaches it."""

    installation_id: int
    repository: str


def remember_source(session: Session, *, url: str, repository: str, installation_id: int, private: bool) -> None:
    """Note through which installation a repository is read; the latest word counts."""
    values = {"repository": repository, "installation_id": installation_id, "private": private}
    statement = insert(GithubSource).values(url=url, **values)
    session.execute(statement.on_conflict_do_update(index_elements=[GithubSource.url], set_=values))


def private_source(session: Session, url: str) -> GithubSource | None:
    """How the private repository at `url` is read; None of a public or unknown one."""
    found = session.get(GithubSource, url)
    return found if found is not None and found.private else None


def next_delivery(session: Session, now: datetime) -> GithubDelivery | None:
    """The oldest that is due, locked. One that waits for its next try holds back the later ones about its pull request:
    else a head that is long gone would come after the present one, and a command would meet another head than was seen.
    """
    due = GithubDelivery.received_at + GithubDelivery.tries * GithubDelivery.tries * AGAIN <= now
    older = aliased(GithubDelivery)
    held_back = select(older.id).where(
        older.handled_at.is_(None), older.tries.between(1, MOST_TRIES - 1),
        older.received_at < GithubDelivery.received_at, _subject(older) == _subject(GithubDelivery),
    )  # fmt: skip
    query = select(GithubDelivery).where(GithubDelivery.handled_at.is_(None), GithubDelivery.tries < MOST_TRIES)
    query = query.where(or_(GithubDelivery.tries == 0, due), ~held_back.exists())
    query = query.order_by(GithubDelivery.received_at).limit(1)
    return session.scalar(query.with_for_update(skip_locked=True, of=GithubDelivery))


def put_off(delivery: GithubDelivery, until: datetime) -> None:
    """It failed once more, and is not due before then."""
    delivery.tries = max(delivery.tries + 1, ceil(sqrt(max((until - delivery.received_at) / AGAIN, 0))))


def _subject(delivery: type[GithubDelivery]) -> ColumnElement[tuple[str, str]]:
    """Repository and number of the pull request that a delivery is about; of others null, which equals nothing."""
    payload = delivery.payload
    number = func.coalesce(payload["number"].astext, payload["issue"]["number"].astext)
    return tuple_(payload["repository"]["full_name"].astext, number)


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


def pulls_through(session: Session, installation_id: int, names: Sequence[str] | None) -> Sequence[GithubPull]:
    """Pull requests that came through an installation, of these repositories or of all, locked."""
    query = select(GithubPull).where(GithubPull.installation_id == installation_id)
    if names is not None:
        query = query.where(GithubPull.repository.in_(names))
    return session.scalars(query.order_by(GithubPull.created_at).with_for_update()).all()


def main_runs_through(session: Session, installation_id: int, names: Sequence[str] | None) -> Sequence[UUID]:
    """Unfinished runs of pushes to the main branches of an installation's repositories, of these or of all."""
    urls = select(GithubSource.url).where(GithubSource.installation_id == installation_id)
    if names is not None:
        urls = urls.where(GithubSource.repository.in_(names))
    query = select(Run.id).join(Repository, Repository.id == Run.repository_id).where(Repository.url.in_(urls))
    query = query.where(Run.idempotency_key.startswith(MAIN_KEY, autoescape=True), Run.state.in_(ACTIVE))
    return session.scalars(query).all()


def places_that_run(session: Session) -> dict[Place, bool]:
    """Where the unfinished runs of pull requests and of pushes to main came from, and whether GitHub did not let one of its
    pull requests be shown."""
    pulls = (
        select(GithubPull.installation_id, GithubPull.repository, func.bool_or(GithubPull.last_error.is_not(None)))
        .join(GithubRun, GithubRun.pull_id == GithubPull.id)
        .join(Run, Run.id == GithubRun.run_id)
        .where(Run.state.in_(ACTIVE))
        .group_by(GithubPull.installation_id, GithubPull.repository)
    )
    mains = (
        select(GithubSource.installation_id, GithubSource.repository, false())
        .join(Repository, Repository.url == GithubSource.url)
        .join(Run, Run.repository_id == Repository.id)
        .where(Run.idempotency_key.startswith(MAIN_KEY, autoescape=True), Run.state.in_(ACTIVE))
    )
    found: dict[Place, bool] = {}
    for installation, repository, unseen in (*session.execute(pulls), *session.execute(mains)):
        place = Place(installation, repository)
        found[place] = found.get(place, False) or unseen
    return found


def forget_sources(session: Session, installation_id: int, names: Sequence[str] | None) -> None:
    """The installation reads these repositories, or any, no more."""
    statement = delete(GithubSource).where(GithubSource.installation_id == installation_id)
    if names is not None:
        statement = statement.where(GithubSource.repository.in_(names))
    session.execute(statement)


def drop_waiting(
    session: Session,
    installation_id: int,
    names: Sequence[str] | None,
    *,
    before: datetime,
    why: str,
    now: datetime,
) -> int:
    """Let go of what came through an installation earlier and waits; how many."""
    payload = GithubDelivery.payload
    statement = update(GithubDelivery).where(
        GithubDelivery.handled_at.is_(None), GithubDelivery.received_at < before,
        payload["installation"]["id"].astext == str(installation_id),
        GithubDelivery.event.not_in(["installation", "installation_repositories"]),
    )  # fmt: skip
    if names is not None:
        statement = statement.where(payload["repository"]["full_name"].astext.in_(names))
    statement = statement.values(handled_at=now, outcome=f"dropped: {why}")
    return len(session.scalars(statement.returning(GithubDelivery.id)).all())


def show_no_more(session: Session, pull: GithubPull, why: str) -> None:
    """Nothing more is sent about a pull request until GitHub tells of it again."""
    pull.look, pull.tries, pull.next_try_at, pull.last_error = False, 0, None, why[:500]
    state = select(cast(Run.state, Text)).where(Run.id == GithubRun.run_id).scalar_subquery()
    session.execute(update(GithubRun).where(GithubRun.pull_id == pull.id).values(shown_state=state))


def take_over(session: Session, installation_id: int, names: Sequence[str]) -> int:
    """Reach the pull requests of these repositories through an installation, and show the present of all of its own; of how
    many."""
    own = or_(GithubPull.installation_id == installation_id, GithubPull.repository.in_(names))
    values = {"installation_id": installation_id, "look": True, "tries": 0, "next_try_at": None, "last_error": None}
    statement = update(GithubPull).where(own, GithubPull.open).values(values)
    return len(session.scalars(statement.returning(GithubPull.id)).all())


def leave_alone(session: Session, installation_id: int, until: datetime) -> None:
    """Nothing is shown through an installation before then: GitHub limits it as a whole."""
    sooner = or_(GithubPull.next_try_at.is_(None), GithubPull.next_try_at < until)
    statement = update(GithubPull).where(GithubPull.installation_id == installation_id, sooner)
    session.execute(statement.values(next_try_at=until))
