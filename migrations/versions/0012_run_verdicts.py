"""How many runs were judged as what, counted as each is judged, so that /metrics reads some rows instead of every view.

The previous release runs on this schema: a trigger counts what it judges, too. Rows of before are counted here, under the lock
that making the trigger takes, so that no verdict is counted twice or not at all.
"""

from pathlib import Path

from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _run("0012_run_verdicts.sql")


def downgrade() -> None:
    _run("0012_run_verdicts_undo.sql")


def _run(name: str) -> None:
    statements = Path(__file__).with_name(name).read_text(encoding="utf-8")
    cursor = op.get_bind().connection.cursor()  # the driver's own: many statements at once, no parameters
    cursor.execute(statements)
    cursor.close()
