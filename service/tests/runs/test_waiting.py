"""What the log says of jobs that wait: for a worker that is busy, for none at all, and how long a message took."""

import re

from driftline_service.database.event_queries import events_of
from driftline_service.database.tables import Attempt

AGAIN = "job_sent_again"
PATIENCE = 31
"""Seconds after which a message counts as lost."""


def test_nobody_took_it_is_said_only_where_nobody_works(world):
    run_id = world.submit()
    first, second = world.messages()
    claim = world.worker.claim(first)
    world.clock.pass_seconds(PATIENCE)
    with world.sessions.begin() as session:  # the worker lives: it beats in real time
        session.get_one(Attempt, claim.attempt_id).lease_until = world.clock() + world.clock.ahead
    assert [sent[1] for sent in world.messages()] == [second[1]], "the message may be lost all the same"
    assert AGAIN not in world.events(run_id)
    world.worker.complete(claim)
    world.clock.pass_seconds(3 * PATIENCE)
    assert second[1] in [sent[1] for sent in world.messages()]
    assert world.events(run_id).count(AGAIN) == 1


def test_the_first_line_of_an_attempt_is_noted_once_with_its_wait(world):
    run_id = world.submit()
    claim = world.worker.claim(world.messages()[0])
    for sequence in (0, 1):
        assert world.worker.report(claim, [{"type": "hello", "protocol": 1}], sequence).json()["action"] == "continue"
    with world.sessions() as session:
        (message,) = [event.message for event in events_of(session, run_id) if event.kind == "child_speaks"]
    assert re.fullmatch(r"build (base|head): first line of attempt 1, \d+\.\d s after its message was sent", message)
