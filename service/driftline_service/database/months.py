"""The tables of months that hold answers and log-probabilities: which there are, and those that are made ahead."""

from collections.abc import Iterable
from datetime import date
from uuid import UUID

from sqlalchemy import ColumnElement, and_, false, text
from sqlalchemy.orm import Session

from driftline_service.database.result_tables import Sample, TeacherForced
from driftline_service.database.tables import Attempt

TABLES = ("samples", "teacher_forced")
"""Partitioned by `month`, each with a default partition that takes what has no month's table yet."""

MONTHS_AHEAD = 2
"""A reconciler that was away for less than this still finds a table for everything."""

LOCK_TIMEOUT = "2s"
"""Attaching waits for those who use the table, and everybody behind it waits too: rather try at the next sweep."""


def lies_in(session: Session, table: type[Sample] | type[TeacherForced], attempt_id: UUID) -> ColumnElement[bool]:
    """Whether a row is of this attempt; its month is told as well, so that one partition is looked at and not all.

    The month is known first: as a subquery it would come too late to leave the other partitions out of the plan. It never
    changes, so that an attempt which the session holds already is not asked for again.
    """
    attempt = session.get(Attempt, attempt_id)
    return false() if attempt is None else and_(table.attempt_id == attempt_id, table.month == attempt.month)


def following(month: date) -> date:
    """The first day of the month after."""
    return date(month.year + month.month // 12, month.month % 12 + 1, 1)


def months_from(today: date) -> list[date]:
    """This month and those that are made ahead."""
    months = [today.replace(day=1)]
    while len(months) <= MONTHS_AHEAD:
        months.append(following(months[-1]))
    return months


def missing_months(session: Session, today: date) -> list[tuple[str, date]]:
    """(table, month) of partitions that are due, and of months of which rows lie in a default partition."""
    names = session.scalars(text("select inhrelid::regclass::text from pg_inherits where inhparent in ("
                                 "'samples'::regclass, 'teacher_forced'::regclass)"))  # fmt: skip
    present = set(names)
    due = {(table, month) for table in TABLES for month in (*months_from(today), *_in_default(session, table))}
    return sorted((table, month) for table, month in due if partition_name(table, month) not in present)


def make_month(session: Session, table: str, month: date) -> None:
    """Make one partition in the caller's transaction, with what lay in the default partition.

    Raises:
        sqlalchemy.exc.OperationalError: if the table was busy for longer than LOCK_TIMEOUT.
    """
    assert table in TABLES  # noqa: S101 - its name goes into SQL
    name, until = partition_name(table, month), following(month)
    statements: Iterable[str] = (
        f"set local lock_timeout = '{LOCK_TIMEOUT}'",
        f"create table {name} (like {table} including defaults including constraints including indexes including storage)",
        f"lock table {table}_default in access exclusive mode",
        f"with moved as (delete from {table}_default where month = '{month}' returning *) "  # noqa: S608
        f"insert into {name} select * from moved",
        f"alter table {table} attach partition {name} for values from ('{month}') to ('{until}')",
    )
    for statement in statements:
        session.execute(text(statement))


def partition_name(table: str, month: date) -> str:
    """samples_2026_12"""
    return f"{table}_{month:%Y_%m}"


def _in_default(session: Session, table: str) -> list[date]:
    query = text(f"select distinct month from {table}_default order by 1")  # noqa: S608 - one of TABLES
    return list(session.scalars(query))
