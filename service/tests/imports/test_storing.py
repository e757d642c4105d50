"""A report is stored whole or not at all, and once."""

import threading
from collections.abc import Iterator

import pytest
from alembic import command
from driftline.contracts.words import Arm, JobKind, JobState
from driftline_service.database import import_queries
from driftline_service.database.engine import make_sessions
from driftline_service.database.migrate import alembic_config, migrate
from driftline_service.database.tables import Event, Import, ImportKind, ImportSample, ImportScore, Job
from driftline_service.imports.reported import NewSample, NewScore
from driftline_service.imports.storing import store
from driftline_service.intake.refusal import Refusal
from driftline_service.runs.submission import submit
from scripted.requests import new_run
from sqlalchemy import Engine, delete, func, select, text, update
from sqlalchemy.exc import DBAPIError, IntegrityError

from .conftest import new_import, new_sample


def count(session, table):
    return session.execute(select(func.count()).select_from(table)).scalar_one()


def test_everything_reported_is_there_and_told(world, reported):
    stored = reported(warnings=("2 answers are [invalid]",))
    assert stored.created
    with world.sessions() as session:
        found = session.get_one(Import, stored.import_id)
        assert (found.commit_sha, found.reported_by, found.note) == ("b" * 40, "Ada", "by hand")
        assert found.warnings == ["2 answers are [invalid]"]
        assert found.promoted_at is None
        answers = list(import_queries.stored_answers(session, found.id))
        assert [answer.doc_id for answer in answers] == list(range(10))
        assert answers[3].response == "so #### 42"
        assert answers[3].target == "#### 42"
        assert answers[3].scores == {"strict-match": 1.0, "flexible-extract": 1.0}
        (event,) = import_queries.import_events(session, found.id)
    assert event.kind == "import_reported"
    assert event.message == f"Ada reported samples of {'b' * 40} on canary V1; 1 warnings: by hand"


def test_the_same_report_twice_is_one_import(world, reported):
    first = reported()
    again = reported(note="again", reported_by="Bob")
    assert again == (first.import_id, False)
    with world.sessions() as session:
        assert (count(session, Import), count(session, ImportSample), count(session, Event)) == (1, 10, 1)


def test_two_at_once_are_one_import(world):
    outcomes = []

    def report() -> None:
        with world.sessions.begin() as session:
            outcomes.append(store(session, new_import()))

    threads = [threading.Thread(target=report) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert sorted(stored.created for stored in outcomes) == [False, False, False, True]
    assert len({stored.import_id for stored in outcomes}) == 1


@pytest.mark.parametrize("change", [{"commit_sha": "e" * 40}, {"lane_name": "canary V0"}])
def test_the_same_files_for_another_commit_or_lane_are_refused(reported, change):
    first = reported()
    with pytest.raises(Refusal, match=str(first.import_id)) as refused:
        reported(**change)
    assert (refused.value.reason, refused.value.status) == ("imported_elsewhere", 409)


def test_a_report_that_breaks_off_leaves_nothing(world, reported):
    def broken() -> Iterator[NewSample]:
        yield from (new_sample(doc_id) for doc_id in range(600))
        raise OSError("the disk is gone")

    with pytest.raises(OSError, match="gone"):
        reported(samples=broken)
    with pytest.raises(IntegrityError):
        reported(samples=lambda: iter([new_sample(1), new_sample(1)]))
    with world.sessions() as session:
        assert [count(session, table) for table in (Import, ImportScore, ImportSample, Event)] == [0, 0, 0, 0]


def test_the_database_refuses_figures_as_a_baseline(world, reported):
    scores = (NewScore("exact_match", "strict-match", 0.5838, None, 1319),)
    stored = reported(kind=ImportKind.FIGURES, samples=tuple, scores=scores)
    promoted = {"promoted_at": func.now(), "promoted_by": "x", "environment_id": "e", "lane_hash": "h"}
    with pytest.raises(IntegrityError, match="ck_imports_baseline"), world.sessions.begin() as session:
        session.execute(update(Import).where(Import.id == stored.import_id).values(**promoted))


def test_the_log_of_imports_is_append_only(world, reported):
    reported()
    with pytest.raises(DBAPIError, match="append-only"), world.sessions.begin() as session:
        session.execute(delete(Event))


def test_undoing_the_migration_keeps_other_runs_and_forgets_imports(fresh_url: str, fresh_engine: Engine):
    """A run that stands on an import goes with it; one that does not stays with its log."""
    sessions = make_sessions(fresh_engine)
    with sessions.begin() as session:
        import_id = store(session, new_import()).import_id
        kept, standing = submit(session, new_run()), submit(session, new_run())
        base = select(Job).where(Job.run_id == standing, Job.kind == JobKind.EVALUATE, Job.arm == Arm.BASE)
        job = session.scalars(base).one()
        job.import_id, job.state, job.finished_at = import_id, JobState.SUCCEEDED, func.now()
    command.downgrade(alembic_config(fresh_url), "0001")
    with fresh_engine.connect() as connection:
        assert connection.execute(text("select id from runs")).scalars().all() == [kept]
        assert connection.execute(text("select distinct run_id from events")).scalars().all() == [kept]
    migrate(fresh_url)
