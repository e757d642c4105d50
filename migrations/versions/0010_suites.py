"""A repository's own tests, and the releases of Triton that kernels are compiled under.

The previous release runs on this schema: it plans no such job, and every new column has a default or may be null.
"""

from pathlib import Path

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _run("0010_suites.sql")


def downgrade() -> None:
    _run("0010_suites_undo.sql")


def _run(name: str) -> None:
    statements = Path(__file__).with_name(name).read_text(encoding="utf-8")
    cursor = op.get_bind().connection.cursor()  # the driver's own: many statements at once, no parameters
    cursor.execute(statements)
    cursor.close()
