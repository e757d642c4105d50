"""Lanes that stop before all questions are asked. The previous release runs on this schema: it never sets the new columns."""

from pathlib import Path

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _run("0004_early_stopping.sql")


def downgrade() -> None:
    _run("0004_early_stopping_undo.sql")


def _run(name: str) -> None:
    statements = Path(__file__).with_name(name).read_text(encoding="utf-8")
    cursor = op.get_bind().connection.cursor()  # the driver's own: many statements at once, no parameters
    cursor.execute(statements)
    cursor.close()
