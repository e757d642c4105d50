"""Answers lie in the table of their attempt's month: moved there, kept there, and moved back."""

import re
from datetime import date, datetime
from uuid import UUID, uuid4

import pytest
from alembic import command
from driftline_service.database import attempt_queries, months
from driftline_service.database.engine import Sessions, make_sessions
from driftline_service.database.migrate import alembic_config, migrate
from driftline_service.database.tables import Sample
from driftline_service.runs.submission import submit
from scripted.requests import new_run
from sqlalchemy import Engine, select, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

OCTOBER, MARCH = date(2026, 10, 1), date(2031, 3, 1)

PLACES = text("select tableoid::regclass::text, doc_id from samples order by 1, 2")
ROWS = "select attempt_id, doc_id, response from samples order by 1, 2"
FORCED = "select attempt_id, doc_id, logprobs from teacher_forced order by 1, 2"


def attempt_at(session: Session, number: int, began: str) -> UUID:
    """An attempt that began then, at the first job there is."""
    statement = """
        insert into attempts (job_id, number, state, worker_name, worker, environment_id, token_hash, lease_until,
                              created_at, finished_at)
        select id, :number, 'failed', 'w', '{}', 'e', :hash, now(), :began, now() from jobs order by id limit 1
        returning id
    """
    values = {"number": number, "hash": f"hash {number}", "began": datetime.fromisoformat(began)}
    return session.scalars(text(statement), values).one()


def answer(session: Session, attempt_id: UUID, doc_id: int, **more: object) -> None:
    """As the release before wrote it, unless a month is given."""
    session.execute(text("insert into questions values ('c', 'q', 't') on conflict do nothing"))
    names = "".join(f", {name}" for name in more)
    values = "".join(f", :{name}" for name in more)
    columns = "rank, content_hash, doc_hash, prompt_hash, target_hash, response, finish_reason, prompt_tokens, "
    columns += "response_tokens, left_truncated"
    session.execute(
        text(f"insert into samples (attempt_id, doc_id, {columns}{names}) values (:attempt, :doc_id, 0, 'c', 'd', 'p', "  # noqa: S608
             f"'t', 'so 42', 'stop', 1, 1, false{values})"),
        {"attempt": attempt_id, "doc_id": doc_id} | more,
    )  # fmt: skip
    session.execute(
        text(f"insert into teacher_forced (attempt_id, doc_id, logprobs, scored_prompt_tokens{names}) "  # noqa: S608
             f"values (:attempt, :doc_id, '\\x00000000', 1{values})"),
        {"attempt": attempt_id, "doc_id": doc_id} | more,
    )  # fmt: skip


def partition_of(session: Session) -> list[tuple[str, int]]:
    return [(place, doc_id) for place, doc_id in session.execute(PLACES)]


def test_existing_answers_move_to_their_months_and_back(fresh_url: str, fresh_engine: Engine) -> None:
    command.downgrade(alembic_config(fresh_url), "0005")
    sessions = make_sessions(fresh_engine)
    with sessions.begin() as session:
        submit_old(session)
        first = attempt_at(session, 1, "2026-10-31T23:59:59+00:00")
        second = attempt_at(session, 2, "2026-11-01T01:30:00+02:00")  # October in UTC
        third = attempt_at(session, 3, "2026-11-01T00:00:00+00:00")
        for attempt in (first, second, third):
            answer(session, attempt, 0)
            answer(session, attempt, 1)
        before = [session.execute(text(query)).all() for query in (ROWS, FORCED)]
    migrate(fresh_url)
    with sessions() as session:
        assert [session.execute(text(query)).all() for query in (ROWS, FORCED)] == before
        assert [place for place, _ in partition_of(session)] == ["samples_2026_10"] * 4 + ["samples_2026_11"] * 2
        assert attempt_queries.sampled_doc_ids(session, second) == {0, 1}
        assert attempt_queries.forced_doc_ids(session, third) == {0, 1}
    command.downgrade(alembic_config(fresh_url), "0005")
    with sessions() as session:
        assert [session.execute(text(query)).all() for query in (ROWS, FORCED)] == before
        with pytest.raises(IntegrityError, match="pk_samples"):
            answer(session, first, 0)
    migrate(fresh_url)
    command.check(alembic_config(fresh_url))


def submit_old(session: Session) -> None:
    """A run on the schema before months, which newer models do not fit."""
    session.execute(text("insert into repositories (url, main_branch) values ('u', 'main')"))
    session.execute(text(
        "insert into runs (name, repository_id, base_ref, head_ref, base_sha, head_sha, base_subject, head_subject, layout, "
        "base_kernel_path, head_kernel_path, base_kernel_tree, head_kernel_tree, margin, created_by) "
        "select 'r', id, 'b', 'h', 'b', 'h', '', '', 'vllm', '', '', '', '', 0.025, 'a person' from repositories"
    ))  # fmt: skip
    session.execute(text("insert into jobs (run_id, kind, arm, commit_sha, kernel_path, queue) "
                         "select id, 'build', 'head', 'h', '', 'cpu' from runs"))  # fmt: skip


def started(sessions: Sessions, began: str) -> UUID:
    with sessions.begin() as session:
        submit(session, new_run())
        return attempt_at(session, 1, began)


def test_a_query_of_an_attempt_plans_for_its_month_alone(core_sessions: Sessions) -> None:
    with core_sessions.begin() as session:
        submit(session, new_run())
        attempt = attempt_at(session, 1, "2026-12-02T00:00:00+00:00")
        of_it = months.lies_in(session, Sample, attempt)
        query = select(Sample.doc_id).where(of_it).compile(session.connection(), compile_kwargs={"literal_binds": True})
        plan = "\n".join(session.scalars(text(f"explain {query}")))
        assert len(set(re.findall(r" on (samples\w+)", plan))) == 1, plan
        nobody = months.lies_in(session, Sample, uuid4())
        assert session.scalars(select(Sample.doc_id).where(nobody)).all() == []


def test_one_row_a_question_in_the_attempts_month_alone(core_sessions: Sessions) -> None:
    attempt = started(core_sessions, "2026-10-05T00:00:00+00:00")
    with core_sessions.begin() as session:
        answer(session, attempt, 0, month=OCTOBER)
    with pytest.raises(IntegrityError, match=r"pkey|pk_samples"), core_sessions.begin() as session:
        answer(session, attempt, 0, month=OCTOBER)
    with pytest.raises(IntegrityError, match="fk_samples_attempt_id_month"), core_sessions.begin() as session:
        answer(session, attempt, 0, month=date(2026, 9, 1))
    with core_sessions.begin() as session:
        attempt_queries.delete_answers(session, attempt)
        assert partition_of(session) == []


def test_what_has_no_table_yet_is_kept_and_moved_when_its_month_is_made(fresh_engine: Engine) -> None:
    sessions = make_sessions(fresh_engine)
    attempt = started(sessions, "2031-03-05T00:00:00+00:00")
    with sessions.begin() as session:
        answer(session, attempt, 7, month=MARCH)
        assert partition_of(session) == [("samples_default", 7)]
        missing = months.missing_months(session, date(2031, 1, 31))
        assert missing == [(table, date(2031, month, 1)) for table in months.TABLES for month in (1, 2, 3)]
    with sessions.begin() as session:
        for table, month in missing:
            months.make_month(session, table, month)
    with sessions.begin() as session:
        assert partition_of(session) == [("samples_2031_03", 7)]
        assert months.missing_months(session, date(2031, 1, 31)) == []
        session.execute(text("delete from attempts"))
        assert partition_of(session) == []  # the month's table has the foreign key too


def test_a_busy_table_is_left_for_the_next_sweep_and_nothing_is_refused(world, core_sessions: Sessions) -> None:
    world.clock.pass_seconds(400 * 86400)
    month = months.months_from(world.clock().date())[0]
    name = months.partition_name("samples", month)
    with core_sessions() as busy:
        busy.execute(text("lock table samples_default in row share mode"))
        assert world.reconciler.step()
        assert busy.scalar(text("select to_regclass(:name)"), {"name": name}) is None
    world.clock.pass_seconds(3 * 3600)
    assert world.reconciler.step()
    with core_sessions() as session:
        assert session.scalar(text("select to_regclass(:name)"), {"name": name}) is not None


@pytest.mark.parametrize(("today", "expected"), [
    (date(2026, 12, 31), ["2026-12-01", "2027-01-01", "2027-02-01"]),
    (date(2026, 1, 1), ["2026-01-01", "2026-02-01", "2026-03-01"]),
])  # fmt: skip
def test_months_ahead(today: date, expected: list[str]) -> None:
    assert [str(month) for month in months.months_from(today)] == expected
