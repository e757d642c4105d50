"""What a change reaches, beside the run. The previous release runs on this schema: it does not know the column."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("runs", sa.Column("impact", JSONB, nullable=True))


def downgrade() -> None:
    op.drop_column("runs", "impact")
