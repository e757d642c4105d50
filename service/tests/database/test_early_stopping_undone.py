"""Undoing the migration of early stopping: the old schema takes every evaluation for a whole one, so shortened runs go."""

from alembic import command
from driftline_service.database.engine import make_sessions
from driftline_service.database.migrate import alembic_config
from driftline_service.database.tables import Attempt, Job
from driftline_service.runs.submission import submit
from scripted.requests import new_run
from sqlalchemy import Engine, select, text


def test_a_run_with_a_shortened_evaluation_goes_and_others_stay(fresh_url: str, fresh_engine: Engine) -> None:
    sessions = make_sessions(fresh_engine)
    with sessions.begin() as session:
        whole, short = submit(session, new_run(name="whole")), submit(session, new_run(name="short"))
        for run_id, asked in ((whole, None), (short, 200)):
            job = session.scalars(select(Job).where(Job.run_id == run_id, Job.kind == "evaluate")).first()
            attempt = Attempt(
                job_id=job.id, number=1, state="succeeded", worker_name="w", worker={}, environment_id="e", asked=asked,
                token_hash=str(run_id), lease_until=job.created_at, finished_at=job.created_at,
            )  # fmt: skip
            session.add(attempt)
            session.flush()
            job.adopted_attempt_id, job.state, job.finished_at = attempt.id, "succeeded", job.created_at
    command.downgrade(alembic_config(fresh_url), "0003")
    with fresh_engine.connect() as connection:
        assert connection.execute(text("select name from runs")).scalars().all() == ["whole"]
    command.upgrade(alembic_config(fresh_url), "head")
