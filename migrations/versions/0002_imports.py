"""Evaluations that people report: imports, their scores and samples, and what became of them in the event log.

The previous release runs on this schema: it never sets the new columns, and every event it writes has a run.
"""

from pathlib import Path

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _run("0002_imports.sql")


def downgrade() -> None:
    _run("0002_imports_undo.sql")


def _run(name: str) -> None:
    statements = Path(__file__).with_name(name).read_text(encoding="utf-8")
    cursor = op.get_bind().connection.cursor()  # the driver's own: many statements at once, no parameters
    cursor.execute(statements)
    cursor.close()
