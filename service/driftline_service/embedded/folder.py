"""The data folder: who holds it, what is where, how a command line finds its server. No process is started here."""

import fcntl
import json
import os
import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Self

from driftline_service.embedded.refusal import CannotServe

SMALLEST_FREE_BYTES = 512 << 20
"""PostgreSQL, an archive of two commits and a run's samples take about 300 MB; below this a run would end half way."""

PRIVATE = 0o600


@dataclass(frozen=True, slots=True)
class ServerFile:
    """server.json: written once the server answers, removed when it stops."""

    url: str
    pid: int
    token_file: str
    data_dir: str


@dataclass(frozen=True, slots=True)
class DataFolder:
    """Places inside the data folder."""

    root: Path
    smallest_free_bytes: int = SMALLEST_FREE_BYTES

    @property
    def postgres(self) -> Path:
        return self.root / "postgres"

    @property
    def broker(self) -> Path:
        return self.root / "broker"

    @property
    def worker(self) -> Path:
        return self.root / "worker"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    @property
    def token_file(self) -> Path:
        return self.root / "admin-token"

    @property
    def server_file(self) -> Path:
        return self.root / "server.json"

    @property
    def lock_file(self) -> Path:
        return self.root / "lock"

    @property
    def children_file(self) -> Path:
        return self.root / "children.json"

    def prepare(self) -> None:
        """Make the folders, readable by their owner only.

        Raises:
            CannotServe: if a folder cannot be made or the disk is nearly full.
        """
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            for folder in (self.broker, self.worker, self.logs):
                folder.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise CannotServe(f"data folder {self.root}: {error.strerror}; choose another with --data-dir") from error
        free = shutil.disk_usage(self.root).free
        if free < self.smallest_free_bytes:
            raise CannotServe(
                f"data folder {self.root}: {free >> 20} MB free on its disk, "
                f"{self.smallest_free_bytes >> 20} MB needed; free some or choose another with --data-dir"
            )

    def write_server_file(self, server: ServerFile) -> None:
        write_private(self.server_file, json.dumps(asdict(server)))

    def remove_server_file(self) -> None:
        self.server_file.unlink(missing_ok=True)


class FolderLock:
    """Held by the one server of a data folder. The kernel lets go of it when the process dies, however it dies."""

    def __init__(self, folder: DataFolder) -> None:
        self._folder = folder
        self._file: IO[str] | None = None

    def take(self) -> Self:
        """Raises CannotServe, naming the holder, if another server has the folder."""
        file = self._folder.lock_file.open("a+", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            holder = file.read().strip() or "another process"
            file.close()
            raise CannotServe(
                f"data folder {self._folder.root} is in use by {holder}; "
                "use that server, stop it, or choose another --data-dir"
            ) from error
        self._file = file
        return self

    def say(self, url: str) -> None:
        """Leave pid and URL for whoever is refused."""
        assert self._file is not None, "take the lock first"  # noqa: S101
        self._file.seek(0)
        self._file.truncate()
        self._file.write(f"pid {os.getpid()} at {url}")
        self._file.flush()

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner reads, whole or not at all."""
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE), "w", encoding="utf-8") as file:
        file.write(text)
    new.replace(path)
