"""The migrated schema is the declared one; migrations can be undone and do not trip over each other."""

from threading import Thread

from alembic import command
from driftline_service.database.migrate import alembic_config, migrate
from driftline_service.database.tables import Base
from sqlalchemy import Engine, inspect, text


def test_models_equal_the_migrated_schema(fresh_url: str) -> None:
    command.check(alembic_config(fresh_url))  # raises if autogenerate would add anything


def test_checks_equal_the_declared_ones(fresh_engine: Engine) -> None:
    """Autogenerate does not look at CHECKs."""
    found = inspect(fresh_engine)
    for table in Base.metadata.sorted_tables:
        declared = {
            str(constraint.name) for constraint in table.constraints if constraint.__visit_name__ == "check_constraint"
        }
        assert {check["name"] for check in found.get_check_constraints(table.name)} == declared, table.name


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
    failures: list[BaseException] = []

    def run() -> None:
        try:
            migrate(fresh_url)
        except BaseException as error:
            failures.append(error)

    threads = [Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert "runs" in inspect(fresh_engine).get_table_names()
