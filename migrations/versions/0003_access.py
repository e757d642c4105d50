"""API tokens and the audit log. The previous release runs on this schema: it does not know the two tables."""

from pathlib import Path

from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    statements = Path(__file__).with_name("0003_access.sql").read_text(encoding="utf-8")
    cursor = op.get_bind().connection.cursor()  # the driver's own: many statements at once, no parameters
    cursor.execute(statements)
    cursor.close()


def downgrade() -> None:
    op.drop_table("audit_log")
    op.drop_table("api_tokens")
