"""Answers and log-probabilities in one table a month; existing ones move, a month at a time."""

from datetime import date
from pathlib import Path

from alembic import op
from sqlalchemy import text

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

MOVE_TIMEOUT = "2h"
"""For each month's move, and for undoing: a million answers with their log-probabilities take minutes, and nobody reads or
writes them meanwhile. docs/operations.md says how long to plan for."""

MONTHS_AHEAD = 2

SAMPLE_COLUMNS = (
    "rank, content_hash, doc_hash, prompt_hash, target_hash, response, finish_reason, prompt_tokens, response_tokens, "
    "left_truncated"
)
COLUMNS = {"samples": SAMPLE_COLUMNS, "teacher_forced": "logprobs, scored_prompt_tokens"}


def upgrade() -> None:
    _run(Path(__file__).with_suffix(".sql"))
    op.execute(f"set local statement_timeout = '{MOVE_TIMEOUT}'")
    for month in _months():
        for table, columns in COLUMNS.items():
            _make_partition(table, month)
            _move(table, columns, month)
    for table in COLUMNS:
        op.execute(f"drop table {table}_before")


def downgrade() -> None:
    op.execute(f"set local statement_timeout = '{MOVE_TIMEOUT}'")
    _run(Path(__file__).with_name("0006_months_undo.sql"))


def _run(file: Path) -> None:
    cursor = op.get_bind().connection.cursor()  # the driver's own: many statements at once, no parameters
    cursor.execute(file.read_text(encoding="utf-8"))
    cursor.close()


def _months() -> list[date]:
    """Those in which an attempt began, this one and the next ones."""
    query = text("""
        select month from attempts
        union select (date_trunc('month', now() at time zone 'UTC') + n * interval '1 month')::date
        from generate_series(0, :ahead) as n order by 1
    """)
    return list(op.get_bind().scalars(query, {"ahead": MONTHS_AHEAD}))


def _make_partition(table: str, month: date) -> None:
    following = date(month.year + month.month // 12, month.month % 12 + 1, 1)
    name = f"{table}_{month:%Y_%m}"
    op.execute(f"create table {name} partition of {table} for values from ('{month}') to ('{following}')")


def _move(table: str, columns: str, month: date) -> None:
    op.execute(f"""
        insert into {table} (attempt_id, doc_id, month, {columns})
        select attempt_id, doc_id, month, {columns}
        from {table}_before join attempts on attempts.id = attempt_id where month = '{month}'
    """)  # noqa: S608 - names of this file, and a date
