"""Further pairs of a lane's evaluations, bisects, and what people decide of change points.

The previous release runs on this schema: it sets none of the new columns, and its jobs are all of the first pair.
"""

from pathlib import Path

from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _run("0008_pairs.sql")


def downgrade() -> None:
    _run("0008_pairs_undo.sql")


def _run(name: str) -> None:
    statements = Path(__file__).with_name(name).read_text(encoding="utf-8")
    cursor = op.get_bind().connection.cursor()  # the driver's own: many statements at once, no parameters
    cursor.execute(statements)
    cursor.close()
