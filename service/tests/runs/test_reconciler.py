"""One at a time, killed anywhere, cut off from its database: the next look mends it."""

import threading

import pytest
from driftline.contracts.words import RunState
from driftline.contracts.worker_api import Claim
from driftline_service.database.engine import make_engine
from driftline_service.dispatch.sender import Sender
from driftline_service.runs import reconciler as module
from driftline_service.runs.reconciler import Reconciler
from scripted.waiting import wait_for
from sqlalchemy import text


def test_a_second_one_is_idle_until_the_first_is_gone(world, core_engine):
    world.submit()
    assert world.reconciler.step()
    second = Reconciler(core_engine, world.broker, world.clock)
    assert not second.step()
    world.reconciler.close()
    assert wait_for(second.step)  # PostgreSQL takes its lock back when it notices that the connection is gone
    second.close()


CUT = """
select pg_terminate_backend(pid) from pg_stat_activity
where datname = current_database() and pid <> pg_backend_pid()
"""


class Killed(BaseException):
    """A SIGKILL, as far as transactions can tell."""


@pytest.mark.parametrize("victim", ["advance", "judge_run", "_deliver", "mark_sent"])
def test_killed_between_any_two_steps_it_only_starts_again(world, core_engine, monkeypatch, victim):
    """Every other call of a step dies, before it or after it was done; a new process takes over each time."""
    calls = {"n": 0}

    def dying(real):
        def call(*arguments, **named):
            calls["n"] += 1
            if calls["n"] % 4 == 1:
                raise Killed
            result = real(*arguments, **named)
            if calls["n"] % 4 == 3:
                raise Killed
            return result

        return call

    place = {"_deliver": Sender, "mark_sent": module.outbox_queries}.get(victim, module)
    monkeypatch.setattr(place, victim, dying(getattr(place, victim)))
    run_id = world.submit()
    current = world.reconciler
    for _ in range(60):
        try:
            current.step()
        except Killed:
            current.close()
            current = Reconciler(core_engine, world.broker, world.clock)
        for _, job_id, token in world.broker.take():
            answer = world.worker.try_claim(job_id, token)
            if answer.status_code == 200:
                world.worker.complete(Claim.model_validate(answer.json()))
        if world.run(run_id).state is RunState.DONE:
            break
        world.clock.pass_seconds(20)
    current.close()
    assert world.run(run_id).state is RunState.DONE
    assert world.events(run_id).count("run_done") == 1
    assert calls["n"] > 1


def test_it_survives_a_lost_connection_and_hears_of_new_runs(world, core_url):
    """Its connections are cut as a restart of PostgreSQL cuts them; it goes on and still wakes at once."""
    world.reconciler.close()
    engine = make_engine(core_url)
    reconciler, stop = Reconciler(engine, world.broker, world.clock), threading.Event()
    thread = threading.Thread(target=reconciler.run_forever, args=(stop,))
    thread.start()
    try:
        run_id = world.submit()
        assert wait_for(lambda: len(world.broker.messages) == 2)
        with world.sessions() as session:
            session.execute(text(CUT))
        for message in world.broker.take():
            world.worker.work(message)
        assert wait_for(lambda: world.run(run_id).state is RunState.CHECKING)
        assert thread.is_alive()
    finally:
        stop.set()
        thread.join(10)
        engine.dispose()
    assert not thread.is_alive()
