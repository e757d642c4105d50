"""Cancelled, superseded, finished: what ends stays ended, and the log is never rewritten."""

import pytest
from driftline.contracts.words import AttemptState, JobState, RunState
from driftline_service.database.tables import Attempt, Event, Job, Run
from driftline_service.runs.cancellation import cancel, supersede
from driftline_service.runs.states import JOB_TRANSITIONS, RUN_TRANSITIONS
from sqlalchemy import delete, func, select, text, update
from sqlalchemy.exc import IntegrityError


def test_reports_after_cancel_stop_the_worker_and_store_nothing(world):
    message = world.evaluating()[0]
    claim = world.worker.claim(message)
    run_id = claim.spec.run_id
    with world.sessions.begin() as session:
        assert cancel(session, run_id, "wrong branch")
    for answer in (world.worker.report(claim, world.worker.lines(claim.spec)), world.worker.finish(claim)):
        assert answer.status_code == 200
        assert answer.json() == {"action": "stop", "reason": "the run is cancelled: wrong branch"}
    with world.sessions() as session:
        attempt = session.get_one(Attempt, claim.attempt_id)
        assert (attempt.state, attempt.next_sequence) == (AttemptState.CANCELLED, 0)
    assert world.job(message[1]).state is JobState.CANCELLED
    assert world.messages() == []
    assert world.run(run_id).state is RunState.CANCELLED


def test_cancel_before_anything_was_sent(world):
    run_id = world.submit()
    with world.sessions.begin() as session:
        assert cancel(session, run_id, "no")
        assert not cancel(session, run_id, "again")
    assert world.messages() == []
    assert world.events(run_id) == ["run_submitted", "run_cancelled"]


def test_supersede_names_the_newer_run(world):
    older, newer = world.submit(), world.submit()
    with world.sessions.begin() as session:
        assert supersede(session, older, newer)
    assert world.run(older).state is RunState.SUPERSEDED
    assert str(newer) in _last_message(world, older)


def _last_message(world, run_id):
    with world.sessions() as session:
        query = select(Event.message).where(Event.run_id == run_id).order_by(Event.id.desc()).limit(1)
        return session.scalars(query).one()


def test_the_database_refuses_to_change_a_finished_state(world):
    run_id = world.submit()
    world.run_until_done(run_id)
    statements = (
        update(Run).where(Run.id == run_id).values(state=RunState.QUEUED, finished_at=None, view=None),
        update(Job).where(Job.run_id == run_id).values(state="queued", finished_at=None, adopted_attempt_id=None),
        update(Attempt).values(state="running", finished_at=None),
    )
    for statement in statements:
        with pytest.raises(IntegrityError, match="a finished state never changes"), world.sessions.begin() as session:
            session.execute(statement)


@pytest.mark.parametrize(
    "statement",
    [update(Event).values(message="it never happened"), delete(Event), text("truncate events")],
    ids=["update", "delete", "truncate"],
)
def test_the_log_is_append_only(world, statement):
    run_id = world.submit()
    with pytest.raises(IntegrityError, match="append-only"), world.sessions.begin() as session:
        session.execute(statement)
    assert world.events(run_id) == ["run_submitted"]


def test_transitions_as_data_end_where_states_are_finished():
    assert {state for state, after in RUN_TRANSITIONS.items() if not after} == {s for s in RunState if s.finished}
    assert {state for state, after in JOB_TRANSITIONS.items() if not after} == {s for s in JobState if s.finished}
    assert RunState.QUEUED in RUN_TRANSITIONS and JobState.QUEUED in JOB_TRANSITIONS


def test_no_word_outside_the_glossary_is_stored(world):
    run_id = world.submit()
    with pytest.raises(IntegrityError, match="ck_runs_state"), world.sessions.begin() as session:
        session.execute(text("update runs set state = 'sleeping' where id = :id"), {"id": run_id})
    with world.sessions() as session:
        assert session.execute(select(func.count()).select_from(Run)).scalar_one() == 1
