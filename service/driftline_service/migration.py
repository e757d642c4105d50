"""`python -m driftline_service.migration`: bring the database to the newest schema, then end. Safe to run at every start."""

import sys

from alembic.util import CommandError
from pydantic import ValidationError
from sqlalchemy.exc import OperationalError

from driftline_service import logs
from driftline_service.database.migrate import migrate
from driftline_service.settings import Settings


def main() -> int:
    """The exit code: 0 if the schema is the newest, 1 if the database is away, locked or newer than this program."""
    try:
        settings = Settings.from_environment()
        logs.configure(format=settings.log_format, level=settings.log_level)
        migrate(settings.database_url.get_secret_value())
    except (ValidationError, OperationalError, CommandError) as error:
        sys.stderr.write(f"driftline: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
