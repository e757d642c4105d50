"""GitHub: deliveries, pull requests and their runs. The previous release runs on this schema: it does not know the tables."""

from pathlib import Path

from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    statements = Path(__file__).with_name("0005_github.sql").read_text(encoding="utf-8")
    cursor = op.get_bind().connection.cursor()  # the driver's own: many statements at once, no parameters
    cursor.execute(statements)
    cursor.close()


def downgrade() -> None:
    for table in ("github_runs", "github_pulls", "github_deliveries"):
        op.drop_table(table)
