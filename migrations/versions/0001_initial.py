"""Runs, jobs, attempts, what they reported, and the log of why."""

from pathlib import Path

from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TABLES = (
    "kernel_builds", "kernel_cases", "teacher_forced", "samples", "questions", "workers", "outbox", "claim_tokens",
    "events", "attempts", "jobs", "run_lanes", "runs", "repositories",
)  # fmt: skip
FUNCTIONS = ("keep_finished", "append_only", "notify_event")


def upgrade() -> None:
    statements = Path(__file__).with_suffix(".sql").read_text(encoding="utf-8")
    cursor = op.get_bind().connection.cursor()  # the driver's own: many statements at once, no parameters
    cursor.execute(statements)
    cursor.close()


def downgrade() -> None:
    op.execute(f"drop table {', '.join(TABLES)} cascade")
    for function in FUNCTIONS:
        op.execute(f"drop function {function}()")
