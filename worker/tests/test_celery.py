"""The worker as its own process: `python -m driftline_worker`, fed through both brokers, stopped by a signal."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty
from typing import Any
from uuid import uuid4

import pytest
import redis
from celery import Celery
from driftline.contracts.worker_api import WORKER_TASK
from driftline_worker import mailbox
from driftline_worker.celery_app import VISIBILITY_SECONDS, make_app
from driftline_worker.settings import PROJECT_ROOT, ChildSettings, WorkerSettings
from git_repository import commit

REDIS = os.environ.get("DRIFTLINE_TEST_REDIS_URL", "redis://127.0.0.1:6379/0").rpartition("/")[0] + "/13"
"""A database of its own on the server that the tests are given."""


@pytest.fixture(params=["filesystem", "redis"])
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "filesystem":
        yield f"filesystem://{tmp_path}/broker"
        return
    yield REDIS
    server = redis.Redis.from_url(REDIS)
    server.flushdb()
    server.close()


@pytest.fixture
def queue() -> str:
    return f"test-{uuid4().hex[:12]}"


@contextmanager
def worker(broker: str, queue: str, url: str, folder: Path) -> Iterator["subprocess.Popen[str]"]:
    """A running worker. Its environment is all that it knows."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(folder), "DRIFTLINE_WORKER_SERVICE_URL": url,
        "DRIFTLINE_WORKER_BROKER_URL": broker, "DRIFTLINE_WORKER_DATA_DIR": str(folder / "data"),
        "DRIFTLINE_WORKER_QUEUES": f'["{queue}"]', "DRIFTLINE_WORKER_ALLOW_LOCAL_REPOSITORIES": "true",
        "DRIFTLINE_WORKER_CONCURRENCY": "2", "DRIFTLINE_WORKER_NAME": "tested",
    }  # fmt: skip
    command = [sys.executable, "-P", "-m", "driftline_worker"]
    log = (folder / "worker.log").open("w")
    process = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        log.close()


def send(broker: str, queue: str, *arguments: str) -> None:
    """As the service does: kombu's own transport writes, the worker's reads."""
    app = Celery(set_as_current=False)
    local = broker.startswith("filesystem://")
    options = mailbox.options(broker) | {"store_processed": False} if local else {}
    app.conf.update(broker_url="filesystem://" if local else broker, broker_transport_options=options)
    app.send_task(WORKER_TASK, args=arguments, queue=queue, ignore_result=True, retry=False)
    app.close()


def unknown_commit(service: Any) -> None:
    source = service.spec.source.model_copy(update={"sha": "f" * 40})
    service.spec = service.spec.model_copy(update={"source": source})


def test_messages_reach_a_running_worker(
    broker: str, queue: str, service: Any, service_url: str, tmp_path: Path
) -> None:
    unknown_commit(service)
    send(broker, queue, str(uuid4()), "sent before it started")
    with worker(broker, queue, service_url, tmp_path) as process:
        send(broker, queue, "no uuid", "dropped")
        send(broker, queue, str(uuid4()), "sent while it starts")
        assert within(30, lambda: len(service.bodies("finish")) == 2), log_of(tmp_path)
        tokens = {token for door, token, _ in service.calls if door == "claim"}
        assert tokens == {"sent before it started", "sent while it starts"}
        assert {body["reason"] for body in service.bodies("finish")} == {"unknown_commit"}
        facts = service.bodies("claim")[0]["worker"]
        assert facts["name"] == "tested"
        assert len(facts["environment_id"]) == 64
        lines = [json.loads(line) for line in log_of(tmp_path).splitlines() if "attempt begins" in line]
        told = {(line["run_id"], line["job_id"] != "", line["attempt_id"] != "") for line in lines}
        assert told == {(str(service.spec.run_id), True, True)}
        begun = time.monotonic()
        send(broker, queue, str(uuid4()), "timed")
        assert within(10, lambda: len(service.bodies("finish")) == 3), log_of(tmp_path)
        assert time.monotonic() - begun < 5
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0, log_of(tmp_path)


def test_a_worker_that_is_stopped_gives_up_what_runs(
    queue: str, service: Any, service_url: str, repository: Path, tmp_path: Path
) -> None:
    """The real check child on kernels that never finish to import."""
    sha = commit(repository, "Hang", {"src/mamba2_varlen/__init__.py": "import time; time.sleep(600)\n"})
    source = service.spec.source.model_copy(update={"sha": sha})
    service.spec = service.spec.model_copy(update={"source": source})
    broker = f"filesystem://{tmp_path}/broker"
    with worker(broker, queue, service_url, tmp_path) as process:
        send(broker, queue, str(uuid4()), "t")
        assert within(30, lambda: running(tmp_path / "data")), log_of(tmp_path)
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == 0, log_of(tmp_path)
    end = service.bodies("finish")[0]
    assert (end["failure_kind"], end["reason"]) == ("transient", "worker_stopped"), log_of(tmp_path)
    assert not running(tmp_path / "data")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"DRIFTLINE_WORKER_SERVICE_URL": "nowhere"}, "DRIFTLINE_WORKER_SERVICE_URL"),
        ({"DRIFTLINE_WORKER_BROKER_URL": "filesystem://relative"}, "absolute folder"),
        ({"DRIFTLINE_WORKER_EVAL_PYTHON": "/no/python"}, "make envs"),
        (
            {"DRIFTLINE_WORKER_GPU_TYPE": "H200", "DRIFTLINE_WORKER_CONCURRENCY": "2"},
            "DRIFTLINE_WORKER_CONCURRENCY: Value error, a GPU does one job at a time",
        ),
        ({"DRIFTLINE_WORKER_SANDBOX": "bubblewrap", "PATH": "/nowhere"}, "apt-get install bubblewrap"),
    ],
)
def test_a_worker_that_is_set_up_wrong_says_so_in_a_line(change: dict[str, str], said: str, tmp_path: Path) -> None:
    environment = {
        "PATH": os.environ["PATH"], "DRIFTLINE_WORKER_SERVICE_URL": "http://127.0.0.1:1",
        "DRIFTLINE_WORKER_BROKER_URL": f"filesystem://{tmp_path}/broker", "DRIFTLINE_WORKER_DATA_DIR": str(tmp_path),
        "DRIFTLINE_WORKER_EVAL_PYTHON": sys.executable,
    }  # fmt: skip
    command = [sys.executable, "-P", "-m", "driftline_worker"]
    answer = subprocess.run(command, env=environment | change, capture_output=True, text=True, timeout=30, check=False)
    assert answer.returncode == 2
    assert said in answer.stderr
    assert "Traceback" not in answer.stderr


def test_a_message_that_is_not_whole_yet_waits(tmp_path: Path) -> None:
    """kombu creates the file before it writes to it."""
    broker = f"filesystem://{tmp_path}/broker"
    app = Celery(set_as_current=False)
    app.conf.update(
        broker_url="filesystem://", broker_transport=f"{mailbox.__name__}:Transport",
        broker_transport_options=mailbox.options(broker),
    )  # fmt: skip
    messages = tmp_path / "broker" / "messages"
    (messages / "1_a.cpu.msg").write_text("")
    (messages / "2_b.cpu.msg").write_text('{"torn": ')
    (messages / "3_c.cpu.msg").write_text('{"whole": 1}')
    with app.connection_for_read() as connection, connection.channel() as channel:
        assert channel._get("cpu") == {"whole": 1}
        assert [path.name for path in messages.iterdir()] == ["1_a.cpu.msg"]
        os.utime(messages / "1_a.cpu.msg", (0, 0))  # its writer met a full disk, long ago
        with pytest.raises(Empty):
            channel._get("cpu")
        assert list(messages.iterdir()) == []
        (messages / "1_a.cpu.msg").write_text('{"late": 1}')
        assert channel._get("cpu") == {"late": 1}
    app.close()


@pytest.mark.parametrize("url", ["redis://127.0.0.1:9/0", "filesystem:///tmp/broker"])
def test_a_message_is_one_jobs_and_kept_until_it_is_done(url: str, tmp_path: Path) -> None:
    """Late acknowledgement, one at a time; Redis gives it to nobody else while the longest child runs."""
    app = make_app(url.replace("/tmp", str(tmp_path)), lambda job, token: None)
    conf = app.conf
    assert (conf.task_acks_late, conf.worker_prefetch_multiplier, conf.task_ignore_result) == (True, 1, True)
    assert conf.accept_content == ["json"]
    longest = ChildSettings.model_fields["total_seconds"].default
    if url.startswith("redis"):
        assert conf.broker_transport_options["visibility_timeout"] == VISIBILITY_SECONDS > longest
    app.close()


def test_queues_follow_the_gpu() -> None:
    fields: dict[str, Any] = {"service_url": "http://s", "broker_url": "redis://r", "data_dir": Path("/d")}
    assert WorkerSettings(**fields).served_queues == ("cpu",)
    assert WorkerSettings(**fields, gpu_type="H100").served_queues == ("cpu", "gpu-H100")
    assert WorkerSettings(**fields, gpu_type="H100", queues=("gpu-H100",)).served_queues == ("gpu-H100",)
    assert "redis://r" not in repr(WorkerSettings(**fields))
    assert WorkerSettings(**fields).eval_python == PROJECT_ROOT / ".venv-eval" / "bin" / "python"


def running(data: Path) -> bool:
    """Is there a child of a worker with this data folder, past its first line?"""
    for entry in Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except OSError:
            continue
        if any(str(data).encode() in word for word in words) and b"-P" in words and b"bwrap" not in words[0]:
            return True
    return False


def log_of(folder: Path) -> str:
    return (folder / "worker.log").read_text()[-4000:]


def within(seconds: float, holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True
