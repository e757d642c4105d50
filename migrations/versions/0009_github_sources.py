"""GitHub: how private repositories are read, check runs that move along with a rebase, annotations, conflicts.

The previous release runs on this schema: it does not know the table, and every new column has a default or may be null.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "github_sources",
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("repository", sa.Text, nullable=False),
        sa.Column("installation_id", sa.BigInteger, nullable=False),
        sa.Column("private", sa.Boolean, nullable=False),
        sa.PrimaryKeyConstraint("url", name="pk_github_sources"),
    )
    op.add_column("github_pulls", sa.Column("conflicts", sa.Text, server_default="", nullable=False))
    op.add_column("github_runs", sa.Column("check_sha", sa.Text, nullable=True))
    op.add_column("github_runs", sa.Column("annotated", sa.Integer, server_default="0", nullable=False))


def downgrade() -> None:
    op.drop_column("github_runs", "annotated")
    op.drop_column("github_runs", "check_sha")
    op.drop_column("github_pulls", "conflicts")
    op.drop_table("github_sources")
