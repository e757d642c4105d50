"""A worker whose hands are full when Redis dies goes on taking messages once it is back."""

import logging
import subprocess
from queue import Empty

import pytest
import redis
from driftline_worker import redis_transport
from driftline_worker.celery_app import make_app
from services import START_SECONDS, redis_binary
from stacks import free_port, wait_for

QUEUE = "cpu"


@pytest.fixture
def server(tmp_path):
    """(its port, a function that kills it and starts it anew, empty)"""
    port, running = free_port(), []

    def start():
        words = [redis_binary(), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", tmp_path]
        running.append(subprocess.Popen(words, stdout=subprocess.DEVNULL))
        wait_for(lambda: answers(port), "Redis", running[-1])

    def kill():
        running[-1].kill()
        running[-1].wait(START_SECONDS)

    start()
    yield port, kill, start
    kill()


def answers(port):
    try:
        with redis.Redis(port=port, socket_connect_timeout=1) as client:
            return client.ping()
    except redis.RedisError:
        return None


def test_a_message_that_could_not_be_acknowledged_does_not_count_for_ever(server):
    port, kill, start = server
    app = make_app(f"redis://127.0.0.1:{port}/0", lambda job, token: None)
    assert app.conf.broker_transport == f"{redis_transport.__name__}:Transport"
    with app.connection_for_read() as connection:
        channel = connection.default_channel
        assert isinstance(channel, redis_transport.Channel)
        channel.basic_qos(0, 1, False)  # one at a time  # noqa: FBT003
        queue = connection.SimpleQueue(QUEUE)
        queue.put("work")
        message = queue.get(timeout=START_SECONDS)
        taken = message.channel
        taken.basic_qos(0, 1, False)  # noqa: FBT003
        assert not taken.qos.can_consume()
        kill()
        message.ack_log_error(logging.getLogger(__name__), connection.connection_errors)
        assert not message.acknowledged
        assert taken.qos.can_consume()
    start()
    with app.connection_for_read() as connection, connection.SimpleQueue(QUEUE) as queue:
        with pytest.raises(Empty):
            queue.get(timeout=0.2)
        queue.put("more")
        queue.get(timeout=START_SECONDS).ack()
    app.close()
