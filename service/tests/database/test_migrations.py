"""The migrated schema is the declared one; migrations can be undone and do not trip over each other."""

import subprocess
import sys

from alembic import command
from driftline_service.database.migrate import alembic_config, migrate
from driftline_service.database.tables import Base
from sqlalchemy import CheckConstraint, Engine, inspect, text


def test_models_equal_the_migrated_schema(core_url: str) -> None:
    command.check(alembic_config(core_url))  # raises if autogenerate would add anything


def test_checks_equal_the_declared_ones(core_engine: Engine) -> None:
    """Autogenerate does not look at CHECKs."""
    found = inspect(core_engine)
    for table in Base.metadata.sorted_tables:
        declared = {str(check.name) for check in table.constraints if isinstance(check, CheckConstraint)}
        migrated = {check["name"] for check in found.get_check_constraints(table.name)}
        assert migrated == declared, table.name


def test_undoing_leaves_nothing_and_redoing_works(fresh_url: str, fresh_engine: Engine) -> None:
    command.downgrade(alembic_config(fresh_url), "base")
    assert inspect(fresh_engine).get_table_names() == ["alembic_version"]
    with fresh_engine.connect() as connection:
        functions = connection.execute(text("select count(*) from pg_proc where pronamespace = 'public'::regnamespace"))
        assert functions.scalar_one() == 0
    migrate(fresh_url)
    assert "runs" in inspect(fresh_engine).get_table_names()


def test_two_at_once_run_one_after_the_other(fresh_url: str, fresh_engine: Engine) -> None:
    command.downgrade(alembic_config(fresh_url), "base")
    program = "import sys; from driftline_service.database.migrate import migrate; migrate(sys.argv[1])"
    command_line = [sys.executable, "-P", "-c", program, fresh_url]
    processes = [subprocess.Popen(command_line) for _ in range(2)]
    assert [process.wait(60) for process in processes] == [0, 0]
    assert "runs" in inspect(fresh_engine).get_table_names()
