"""${message}.

Before you write this: the previous release runs on this schema while it is rolled out. Add a column as nullable or with
a server default; drop it one release after its last use; build indexes on large tables concurrently.
"""

${imports if imports else ""}
import sqlalchemy as sa
from alembic import op

revision = ${repr(up_revision)}
down_revision = ${repr(down_revision)}
branch_labels = None
depends_on = None


def upgrade() -> None:
    ${upgrades if upgrades else "pass"}


def downgrade() -> None:
    ${downgrades if downgrades else "pass"}
