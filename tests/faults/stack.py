"""The production processes with what a host would do for them: each is started again when it dies. For the main thread.

PostgreSQL and Redis are this stack's own, since both are killed.
"""

import http.client
import os
import signal
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import compose_stack
import psutil
import redis
from driftline.cli.server import Server
from driftline_service.embedded import postgres
from driftline_service.embedded.child import Child, Program
from driftline_service.embedded.folder import DataFolder
from faults.doorway import Doorway
from services import redis_binary
from stacks import EXTRA, free_port, place_of

ENTRY = Path(__file__).with_name("process.py")
TIME_LAPSE = 6
"""A back-off of 5 s takes less than one, a message is given up for lost after 5 s, a lease is over after 10 s."""

BEATS_PER_LEASE = 2
"""A worker beats every 5 s of its own time, whatever the lease; the service lives TIME_LAPSE times as fast."""

REVIVE_SECONDS = 0.3
SMALL_DISK_BYTES = 320 << 20
FILLER_BYTES = 128 << 20
"""Leaves less than the 256 MB below which a worker calls its disk full."""

SERVERS = ("service", "reconciler", "worker")


@dataclass
class Stack:
    """A folder of its own; `token` is the admin's."""

    folder: Path
    token: str
    skew: float = 0.0
    small_disk: bool = False
    children: dict[str, Child] = field(default_factory=dict)
    died_at: dict[str, float] = field(default_factory=dict)

    def start(self) -> None:
        data = DataFolder(self.folder)
        data.prepare()
        self.database = postgres.prepare(data)
        self.children["postgres"] = Child(self.database.program())
        postgres.start(self.database, self.children["postgres"])
        self.redis_port, self.service_port = free_port(), free_port()
        self._launch(self._redis())
        place = replace(place_of(self.database.url, self.broker_url, self.token, self.folder), port=self.service_port)
        self.doorway = Doorway(place.port)
        self.server = Server(place.url, self.token)
        self._place, self._epoch = place, time.time()
        self._compose = compose_stack.read_compose()
        compose_stack.migrate(self._compose, place, extra={"DRIFTLINE_LOG_LEVEL": "WARNING"})
        for name in SERVERS:
            self._launch(self._python(name))

    @property
    def broker_url(self) -> str:
        return f"redis://127.0.0.1:{self.redis_port}/0"

    @property
    def scratch(self) -> Path:
        return self.folder / "worker" / "scratch"

    def worker_lives_with(self, *, skew: float, small_disk: bool) -> None:
        """Start the worker anew with another clock or disk."""
        if (skew, small_disk) != (self.skew, self.small_disk):
            self.skew, self.small_disk = skew, small_disk
            self.children["worker"].stop()
            self._launch(self._python("worker"))

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """From any thread; the main thread revives it."""
        process = self.children[name].process
        if process is not None and process.poll() is None:
            process.send_signal(number)

    def kill_a_child(self) -> bool:
        """The program that a sandbox holds, if one runs."""
        for one in self.of_jobs():
            with suppress(psutil.Error):
                if one.name().startswith("python") and "guard.py" not in " ".join(one.cmdline()):
                    one.kill()
                    return True
        return False

    def of_jobs(self) -> list[psutil.Process]:
        """Every process that was started for a job of this stack, by whichever worker."""
        found = []
        for one in psutil.process_iter():
            try:
                if "--channel-fd" in (words := one.cmdline()) and any(str(self.scratch) in word for word in words):
                    found.append(one)
            except psutil.Error:
                continue
        return found

    def fill_disk(self, *, full: bool) -> None:
        """Of the worker's own small disk, which only its processes see: entered through /proc."""
        process = self.children["worker"].process
        filler = Path(f"/proc/{process.pid}/root{self.scratch}/filler") if process is not None else None
        try:
            if filler is not None and full:
                with filler.open("wb") as file:
                    os.posix_fallocate(file.fileno(), 0, FILLER_BYTES)
            elif filler is not None:
                filler.unlink(missing_ok=True)
        except OSError:  # the worker was killed meanwhile, and its disk went with it
            return

    def redis(self) -> "redis.Redis":
        return redis.Redis(port=self.redis_port, socket_timeout=3, socket_connect_timeout=2)

    def ready(self) -> bool:
        """Whether the service and what it needs answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.service_port, timeout=5)
        try:
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def tend(self) -> None:
        """Start what has died."""
        for name, child in self.children.items():
            if child.running:
                self.died_at.pop(name, None)
            elif time.monotonic() - self.died_at.setdefault(name, time.monotonic()) > REVIVE_SECONDS:
                if name == "postgres":
                    postgres.clear_way(self.database)
                    postgres.clear_leftover(self.database.folder.postgres)
                self.died_at.pop(name)
                child.start()

    def stop(self) -> None:
        self.doorway.close()
        for child in reversed(self.children.values()):
            child.stop()

    def _launch(self, program: Program) -> None:
        self.children[program.name] = Child(program)
        self.children[program.name].start()

    def _redis(self) -> Program:
        words = (str(redis_binary()), "--port", str(self.redis_port), "--bind", "127.0.0.1", "--save", "")
        return Program("redis", words, {"PATH": os.defpath}, self.folder, self.folder / "logs" / "redis.log")

    def _python(self, name: str) -> Program:
        extra = EXTRA[name] | {
            "FAULTS_TIME_LAPSE": str(TIME_LAPSE), "FAULTS_EPOCH": str(self._epoch), "FAULTS_SKEW": str(self.skew),
        }  # fmt: skip
        if name == "worker":
            extra |= {
                "DRIFTLINE_WORKER_SERVICE_URL": self.doorway.url, "DRIFTLINE_WORKER_NAME": "faulty",
                "DRIFTLINE_WORKER_EVAL_PYTHON": sys.executable,
            }  # fmt: skip
        made = compose_stack.process(self._compose, name, self._place, extra=extra)
        python, closed, _module, *named = made.command
        words = (python, closed, str(ENTRY), *named)
        if name == "worker" and self.small_disk:
            words = (*self._small_disk(), *words)
        return Program(name, words, made.environment, self.folder, self.folder / "logs" / f"{name}.log")

    def _small_disk(self) -> tuple[str, ...]:
        """A namespace in which the scratch folder is a disk of its own."""
        self.scratch.mkdir(parents=True, exist_ok=True)
        size = ("--size", str(SMALL_DISK_BYTES), "--tmpfs", str(self.scratch))
        return ("bwrap", "--dev-bind", "/", "/", *size, "--die-with-parent", "--")
