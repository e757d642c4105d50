"""Named queries on runs and their lanes. State changes are conditional updates from an expected state."""

from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from driftline.contracts.words import RunState
from sqlalchemy import select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from driftline_service.database.tables import Repository, Run, RunLane

ACTIVE = tuple(state for state in RunState if not state.finished)


def repository_id(session: Session, url: str, main_branch: str) -> UUID:
    """The repository's row, made if it is new; its main branch is what was said last."""
    statement = insert(Repository).values(url=url, main_branch=main_branch)
    statement = statement.on_conflict_do_update(index_elements=["url"], set_={"main_branch": main_branch})
    return session.execute(statement.returning(Repository.id)).scalar_one()


def insert_run(session: Session, values: dict[str, Any]) -> UUID | None:
    """The new run's id, or None if its idempotency key is taken."""
    statement = insert(Run).values(**values).on_conflict_do_nothing(index_elements=["idempotency_key"])
    return session.execute(statement.returning(Run.id)).scalar_one_or_none()


def run_with_key(session: Session, idempotency_key: str) -> UUID:
    return session.execute(select(Run.id).where(Run.idempotency_key == idempotency_key)).scalar_one()


def run_by_id(session: Session, run_id: UUID) -> Run | None:
    return session.get(Run, run_id)


def lock_run(session: Session, run_id: UUID) -> Run:
    """The run, locked until the transaction ends. Locks are taken in the order run, job, attempt.

    Raises:
        sqlalchemy.exc.NoResultFound: if there is no such run.
    """
    query = select(Run).where(Run.id == run_id).with_for_update(key_share=True, of=Run)
    return session.execute(query.execution_options(populate_existing=True)).scalar_one()


def do_not_wait_for_disk(session: Session) -> None:
    """Let this transaction commit before it is on disk. For what a crash of PostgreSQL may undo because it is done again;
    what commits later takes it along to the disk."""
    session.execute(text("set local synchronous_commit = off"))


def active_run_ids(session: Session) -> Sequence[UUID]:
    """Runs that are not finished, oldest first."""
    return session.scalars(select(Run.id).where(Run.state.in_(ACTIVE)).order_by(Run.created_at, Run.id)).all()


def lanes_of(session: Session, run_id: UUID) -> Sequence[RunLane]:
    return session.scalars(select(RunLane).where(RunLane.run_id == run_id).order_by(RunLane.position)).all()


def lane_of(session: Session, run_id: UUID, name: str) -> RunLane:
    return session.execute(select(RunLane).where(RunLane.run_id == run_id, RunLane.name == name)).scalar_one()


def stop_lane(session: Session, row: RunLane, *, after: int, why: str) -> bool:
    """Keep where a lane of a run was stopped; False if it was stopped already."""
    statement = update(RunLane).where(RunLane.run_id == row.run_id, RunLane.position == row.position)
    statement = statement.where(RunLane.stopped_after.is_(None)).values(stopped_after=after, stopped_why=why)
    return session.execute(statement.returning(RunLane.position)).scalar_one_or_none() is not None


def move_run(session: Session, run_id: UUID, *, expected: Iterable[RunState], state: RunState, **values: Any) -> bool:
    """Change the run's state if it is one of those expected; True if it was."""
    statement = update(Run).where(Run.id == run_id, Run.state.in_(tuple(expected))).values(state=state, **values)
    return session.execute(statement.returning(Run.id)).scalar_one_or_none() is not None
