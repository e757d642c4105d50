"""The embedded PostgreSQL alone: each trap that a killed server, a reused pid or a half-made folder sets."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import psycopg
import pytest
from driftline_service.embedded import postgres
from driftline_service.embedded.child import Child
from driftline_service.embedded.folder import DataFolder
from driftline_service.embedded.refusal import CannotServe

KILLED_OWNER = """
import os, sys
from pathlib import Path
from driftline_service.embedded import postgres
from driftline_service.embedded.child import Child
from driftline_service.embedded.folder import DataFolder
server = postgres.prepare(DataFolder(Path(sys.argv[1])))
child = Child(server.program())
postgres.start(server, child)
print(child.process.pid, flush=True)
os.kill(os.getpid(), 9)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> DataFolder:
    made = DataFolder(tmp_path_factory.mktemp("data"))
    made.prepare()
    return made


@pytest.fixture
def running(folder: DataFolder) -> Iterator[tuple[postgres.Postgres, Child]]:
    server = postgres.prepare(folder)
    child = Child(server.program())
    postgres.start(server, child)
    yield server, child
    child.stop()


def _wait_gone(pid: int) -> None:
    deadline = time.monotonic() + 10
    while psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline, f"{pid} is still there"
        time.sleep(0.05)


def test_it_listens_on_a_private_socket_only(running: tuple[postgres.Postgres, Child]) -> None:
    server, child = running
    assert server.answers()
    assert server.sockets.stat().st_mode & 0o777 == 0o700
    assert child.process is not None
    assert [c for c in psutil.Process(child.process.pid).net_connections() if c.family.name.startswith("AF_INET")] == []


def test_it_dies_with_its_owner_and_keeps_what_was_committed(folder: DataFolder) -> None:
    server = postgres.prepare(folder)
    child = Child(server.program())
    postgres.start(server, child)
    with psycopg.connect(host=str(server.sockets), user="postgres", dbname="postgres") as connection:
        connection.execute("create table if not exists kept as select 21467 as number")
    child.stop()
    answer = subprocess.run(
        [sys.executable, "-P", "-c", KILLED_OWNER, folder.root], capture_output=True, text=True, check=False
    )
    assert answer.returncode == -signal.SIGKILL
    _wait_gone(int(answer.stdout))
    server = postgres.prepare(folder)
    child = Child(server.program())
    postgres.start(server, child)
    with psycopg.connect(host=str(server.sockets), user="postgres", dbname="postgres") as connection:
        assert connection.execute("select number from kept").fetchone() == (21467,)
    child.stop()


def test_a_killed_postmaster_is_started_again(running: tuple[postgres.Postgres, Child]) -> None:
    server, child = running
    assert child.process is not None
    os.kill(child.process.pid, signal.SIGKILL)
    child.process.wait()
    assert not server.answers()
    postgres.clear_leftover(server.folder.postgres)
    postgres.start(server, child)
    assert server.answers()


def test_a_pid_file_with_a_strangers_pid_does_not_stop_it(folder: DataFolder) -> None:
    server = postgres.prepare(folder)
    stranger = subprocess.Popen(["sleep", "60"], user=server.system_user)
    pid_file = folder.postgres / "postmaster.pid"
    pid_file.write_text(f"{stranger.pid}\n{folder.postgres}\n1\n5432\n{server.sockets}\n\n  0 0\nready   \n")
    try:
        child = Child(postgres.prepare(folder).program())
        postgres.start(server, child)
        assert server.answers()
        assert stranger.poll() is None, "a stranger must not be touched"
        child.stop()
    finally:
        stranger.kill()
        stranger.wait()


def test_a_folder_of_another_version_is_refused(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "old")
    folder.prepare()
    server = postgres.prepare(folder)
    (folder.postgres / "PG_VERSION").write_text("12\n")
    with pytest.raises(CannotServe, match="is of PostgreSQL 12, this wheel runs 18"):
        postgres.prepare(folder)
    assert server.folder is folder


def test_a_folder_of_another_user_is_refused(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "theirs")
    folder.prepare()
    folder.postgres.mkdir()
    os.chown(folder.postgres, 4242, 4242)
    with pytest.raises(CannotServe, match="belongs to user id 4242"):
        postgres.prepare(folder)


def test_a_half_made_database_is_made_again(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / "half")
    folder.prepare()
    half = folder.root / "postgres.new"
    half.mkdir()
    (half / "PG_VERSION").write_text("18\n")
    server = postgres.prepare(folder)
    assert not half.exists()
    assert (server.folder.postgres / "global").is_dir()


def test_a_long_path_gets_a_short_socket_folder(tmp_path: Path) -> None:
    folder = DataFolder(tmp_path / ("long" * 30))
    folder.prepare()
    server = postgres.prepare(folder)
    child = Child(server.program())
    postgres.start(server, child)
    assert len(str(server.sockets)) < 60
    child.stop()
    server.sockets.rmdir()
