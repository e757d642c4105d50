"""Brings a database to the newest schema. The migrations themselves are in migrations/ beside the packages."""

from pathlib import Path

from alembic import command
from alembic.config import Config

MIGRATIONS = Path(__file__).parents[3] / "migrations"


def migrate(database_url: str, *, revision: str = "head") -> None:
    """Upgrade to `revision`. Two processes that call this at once run one after the other.

    Raises:
        sqlalchemy.exc.OperationalError: if the database is not there, or a table stayed locked for too long.
        alembic.util.CommandError: if the database is newer than this program.
    """
    command.upgrade(alembic_config(database_url), revision)


def alembic_config(database_url: str) -> Config:
    """Alembic's configuration; the URL travels beside it, since Alembic expands % in what a file may hold."""
    config = Config(MIGRATIONS / "alembic.ini")
    config.attributes["database_url"] = database_url
    return config
