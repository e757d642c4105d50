"""The outbox waits for its broker, mints tokens as messages leave, and sends nothing that nobody needs."""

import json
from uuid import uuid4

import pytest
from driftline.contracts.worker_api import WORKER_TASK
from driftline_service.database.tables import ClaimToken, OutboxMessage
from driftline_service.dispatch.celery_producer import CeleryProducer, make_app
from driftline_service.dispatch.producer import BrokerDown
from driftline_service.dispatch.tokens import hash_of, mint
from driftline_service.runs.cancellation import cancel
from sqlalchemy import select


def outbox(world):
    with world.sessions() as session:
        return session.scalars(select(OutboxMessage)).all()


def test_a_broker_that_is_down_is_waited_for(world):
    world.submit()
    world.broker.down = True
    assert world.messages() == []
    waiting = [row for row in outbox(world) if row.tries]
    assert [(row.sent_at, row.tries, row.last_error) for row in waiting] == [(None, 1, "connection refused")]
    world.broker.down = False
    world.clock.pass_seconds(2)
    assert len(world.messages()) == 2
    assert all(row.sent_at is not None and row.last_error is None for row in outbox(world))


def test_back_off_doubles_up_to_half_a_minute(world):
    world.submit()
    world.broker.down = True
    waits = []
    for tries in range(1, 9):
        while not any(row.tries == tries for row in outbox(world)):
            world.messages()
        row = next(row for row in outbox(world) if row.tries == tries)
        waits.append(round((row.not_before - world.clock()).total_seconds()))
        world.clock.pass_seconds(31)
    assert waits == [1, 2, 4, 8, 16, 30, 30, 30]


def test_tokens_are_minted_when_messages_leave(world):
    world.submit()
    with world.sessions() as session:
        assert session.scalars(select(ClaimToken)).all() == []
    sent = world.messages()
    with world.sessions() as session:
        stored = {token.token_hash: token.job_id for token in session.scalars(select(ClaimToken))}
    assert stored == {hash_of(token): job_id for _, job_id, token in sent}


def test_what_nobody_needs_is_not_sent(world):
    run_id = world.submit()
    with world.sessions.begin() as session:
        cancel(session, run_id, "no")
    assert world.messages() == []
    assert outbox(world) == []


def test_a_token_never_shows_itself():
    token = mint()
    assert token.secret not in repr(token)
    assert mint().secret != token.secret
    assert len(token.hash) == 64


def test_celery_over_a_folder(tmp_path):
    """Read back by a consumer of its own: task name, queue, JSON arguments and nothing that asks for a result."""
    url, job_id = f"filesystem://{tmp_path}/broker", uuid4()
    producer = CeleryProducer(url)
    producer.send("gpu-H200", job_id, "a token", priority=0)
    producer.close()
    app = make_app(url)
    with app.connection_for_read() as connection, connection.SimpleQueue("gpu-H200") as queue:
        message = queue.get(timeout=5)
        message.ack()
    app.close()
    assert message.headers["task"] == WORKER_TASK
    assert message.headers["ignore_result"] is True
    assert message.content_type == "application/json"
    arguments, named, _ = json.loads(message.body)
    assert (arguments, named) == ([str(job_id), "a token"], {})


def test_celery_over_redis():
    app = make_app("redis://127.0.0.1:6379/5")
    queue_name, job_id = f"test-{uuid4()}", uuid4()
    producer = CeleryProducer("redis://127.0.0.1:6379/5")
    producer.send(queue_name, job_id, "a token", priority=0)
    producer.close()
    with app.connection_for_read() as connection, connection.SimpleQueue(queue_name) as queue:
        message = queue.get(timeout=5)
        message.ack()
        queue.queue.delete()
    app.close()
    assert json.loads(message.body)[0] == [str(job_id), "a token"]


def test_no_redis_is_a_broker_that_is_down():
    producer = CeleryProducer("redis://127.0.0.1:1/0")
    with pytest.raises(BrokerDown):
        producer.send("cpu", uuid4(), "a token", priority=0)
    producer.close()


def test_a_folder_that_is_gone_is_a_broker_that_is_down(tmp_path):
    producer = CeleryProducer(f"filesystem://{tmp_path}/broker")
    (tmp_path / "broker" / "messages").rmdir()
    (tmp_path / "broker" / "control").rmdir()
    with pytest.raises(BrokerDown):
        producer.send("cpu", uuid4(), "a token", priority=0)
    producer.close()


def test_a_relative_folder_is_refused():
    with pytest.raises(ValueError, match="absolute folder"):
        make_app("filesystem://broker")
