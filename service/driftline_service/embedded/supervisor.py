"""Starts the stack in order, keeps it running, stops it in the opposite order. It knows nothing of runs."""

import os
import signal
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from types import FrameType

from driftline_service.auth.token import ensure_token_file
from driftline_service.database.migrate import migrate
from driftline_service.embedded import leftovers, postgres, programs
from driftline_service.embedded.child import Child
from driftline_service.embedded.folder import DataFolder, FolderLock, ServerFile
from driftline_service.embedded.options import Options
from driftline_service.embedded.refusal import CannotServe

LOOK_SECONDS = 0.2
READY_SECONDS = 60.0
HOST = "127.0.0.1"
NO_SPACE = "No space left on device"

Say = Callable[[str], None]


class Supervisor:
    """One embedded stack, from start to stop, on the main thread of its process."""

    def __init__(self, options: Options, say: Say) -> None:
        self._options = options
        self._say = say
        self._folder = DataFolder(options.data_dir)
        self._stop = threading.Event()
        self._children: list[Child] = []
        self._database: postgres.Postgres | None = None

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT.

        Raises:
            CannotServe: if the stack cannot be started.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        self._check()
        self._folder.prepare()
        lock = FolderLock(self._folder).take()
        try:
            leftovers.end(self._folder.children_file)
            listener = _listen(self._options.port)
            url = f"http://{HOST}:{listener.getsockname()[1]}"
            lock.say(url)
            self._start(url, listener)
            self._keep_running()
        finally:
            self._stop_all()
            lock.release()

    def _on_signal(self, number: int, _frame: FrameType | None) -> None:
        if not self._stop.is_set():
            self._say(f"{signal.Signals(number).name}: stopping")
        self._stop.set()

    def _check(self) -> None:
        options = self._options
        if not options.config.is_file():
            raise CannotServe(f"no lanes: {options.config} does not exist; name the file with --config")
        if options.worker and not options.eval_python.exists():
            raise CannotServe(
                f"no evaluation environment: {options.eval_python} does not exist; "
                "run `make envs`, or name one with --eval-python"
            )

    def _start(self, url: str, listener: socket.socket) -> None:
        ensure_token_file(self._folder.token_file)
        self._database = postgres.prepare(self._folder)
        database = Child(self._database.program())
        self._children.append(database)
        postgres.start(self._database, database)
        migrate(self._database.url)
        stack = programs.Stack(self._options, self._folder, self._database.url, url, listener.fileno())
        self._launch(Child(programs.service(stack)))
        self._wait_ready(url)
        self._launch(Child(programs.reconciler(stack)))
        if self._options.worker:
            self._launch(Child(programs.worker(stack)))
        self._folder.write_server_file(
            ServerFile(
                url=url, pid=os.getpid(), token_file=str(self._folder.token_file), data_dir=str(self._folder.root)
            )
        )
        self._say(f"Driftline is at {url}")
        self._say(f"admin token: {self._folder.token_file}   logs: {self._folder.logs}")

    def _launch(self, child: Child) -> None:
        self._children.append(child)
        child.start()
        self._remember()

    def _remember(self) -> None:
        pids = [child.process.pid for child in self._children if child.process is not None and child.running]
        try:
            leftovers.remember(self._folder.children_file, pids)
        except OSError as error:  # a full disk, say: the list only helps after our own sudden death
            self._say(f"{self._folder.children_file}: {error.strerror}")

    def _wait_ready(self, url: str) -> None:
        service = self._children[-1]
        deadline = time.monotonic() + READY_SECONDS
        while not _is_ready(url):
            if not service.running or time.monotonic() > deadline:
                raise CannotServe(
                    f"the service does not start: {service.last_words()} (whole log: {service.program.log})"
                )
            if self._stop.wait(LOOK_SECONDS):
                return

    def _keep_running(self) -> None:
        while not self._stop.wait(LOOK_SECONDS):
            for child in self._children:
                if not child.running:
                    self._revive(child)

    def _revive(self, child: Child) -> None:
        if child.next_start == 0.0:
            code = child.process.returncode if child.process is not None else None
            pause = child.plan_restart()
            said = child.last_words()
            remedy = f"; free space on the disk of {self._folder.root}" if NO_SPACE in said else ""
            self._say(
                f"{child.program.name} ended with {code}; starting it again in {pause:g} s. It said: {said}{remedy}"
            )
        elif time.monotonic() >= child.next_start:
            child.next_start = 0.0
            if child.program.name == "postgres" and self._database is not None:
                postgres.clear_way(self._database)
                postgres.clear_leftover(self._folder.postgres)
            child.start()
            self._remember()

    def _stop_all(self) -> None:
        self._folder.remove_server_file()
        for child in reversed(self._children):
            child.stop()
        self._folder.children_file.unlink(missing_ok=True)


def _listen(port: int) -> socket.socket:
    """The supervisor owns the socket, so that a service that is started again keeps its address and loses no caller."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((HOST, port))
    except (OSError, OverflowError) as error:
        listener.close()
        why = error.strerror if isinstance(error, OSError) else "there is no such port"
        raise CannotServe(f"port {port} on {HOST}: {why}; choose another with --port, or 0 for any free one") from error
    listener.listen(128)
    return listener


def _is_ready(url: str) -> bool:
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=2) as answer:  # noqa: S310 - our own http URL
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False
