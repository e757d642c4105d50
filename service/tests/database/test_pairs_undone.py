"""Undoing the migration of pairs: what further pairs measured goes with them, runs and their log stay."""

from alembic import command
from driftline_service.database.engine import make_sessions
from driftline_service.database.migrate import alembic_config
from driftline_service.database.tables import Attempt, Event, Job
from driftline_service.runs.submission import submit
from scripted.requests import new_run
from sqlalchemy import Engine, select, text


def test_further_pairs_go_and_the_log_stays(fresh_url: str, fresh_engine: Engine) -> None:
    with make_sessions(fresh_engine).begin() as session:
        run_id = submit(session, new_run(repeats=1))
        later = submit(session, new_run())
        job = session.scalars(select(Job).where(Job.run_id == run_id, Job.pair == 1)).first()
        attempt = Attempt(
            job_id=job.id, number=1, state="succeeded", worker_name="w", worker={}, environment_id="e", token_hash="t",
            lease_until=job.created_at, finished_at=job.created_at,
        )  # fmt: skip
        session.add(attempt)
        session.flush()
        job.adopted_attempt_id, job.state, job.finished_at = attempt.id, "succeeded", job.created_at
        session.add(Event(run_id=run_id, job_id=job.id, kind="job_succeeded"))
        base = session.scalars(
            select(Job).where(Job.run_id == later, Job.arm == "base", Job.pair == 0, Job.kind == "evaluate")
        )
        base.one().reused_from_job_id = job.id
    command.downgrade(alembic_config(fresh_url), "0007")
    with fresh_engine.connect() as connection:
        counted = "select count(*) from jobs where kind = 'evaluate'"
        assert connection.execute(text(counted)).scalar_one() == 4
        told = connection.execute(text("select job_id from events where kind = 'job_succeeded'")).scalars().all()
        assert told == [None]
    command.upgrade(alembic_config(fresh_url), "head")
