"""The migration that counts verdicts counts those of before it, and not one of them twice."""

from alembic import command
from driftline_service.clock import now_utc
from driftline_service.database.engine import make_sessions
from driftline_service.database.migrate import alembic_config, migrate
from driftline_service.database.tables import Run, RunVerdict
from driftline_service.runs.submission import submit
from scripted.requests import new_run
from sqlalchemy import Engine, select, update


def test_verdicts_of_before_are_counted(fresh_url: str, fresh_engine: Engine) -> None:
    sessions = make_sessions(fresh_engine)
    command.downgrade(alembic_config(fresh_url), "0011")
    with sessions.begin() as session:
        *judged, under_way = [submit(session, new_run()) for _ in range(4)]
    for run_id, verdict in zip(judged, ("equivalent", "equivalent", None), strict=True):
        _judge(sessions, run_id, verdict)
    migrate(fresh_url)
    assert _counted(sessions) == {("equivalent", "passed"): 2, ("none", "passed"): 1}
    _judge(sessions, under_way, "equivalent")
    assert _counted(sessions) == {("equivalent", "passed"): 3, ("none", "passed"): 1}


def _judge(sessions, run_id, verdict):
    view = {"verdict": verdict, "kernel_check": {"result": "passed"}}
    with sessions.begin() as session:
        session.execute(update(Run).where(Run.id == run_id).values(state="done", view=view, finished_at=now_utc()))


def _counted(sessions):
    with sessions() as session:
        return {(row.verdict, row.kernel_check): row.runs for row in session.scalars(select(RunVerdict))}
