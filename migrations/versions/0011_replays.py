"""A webhook's signature, once: a body that was here under another id is refused.

The previous release runs on this schema: it leaves the new column empty, and NULLs are never equal. Rows of before have no
signature, so what they hold could be replayed once.
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("github_deliveries", sa.Column("signature", sa.Text, nullable=True))
    op.create_index("ix_github_deliveries_signature", "github_deliveries", ["signature"], unique=True)


def downgrade() -> None:
    op.drop_index("ix_github_deliveries_signature", table_name="github_deliveries")
    op.drop_column("github_deliveries", "signature")
