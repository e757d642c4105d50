"""What outlives a worker that is killed: which attempts it held. The next worker on this disk gives them back at once.

One file an attempt, with its token, in a folder that no sandboxed child can see. Its owner holds a lock on it, which the
kernel lets go of when the owner dies, however it dies: so what is locked lives, also beside a worker that starts.
"""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkstemp
from uuid import UUID

import structlog
from driftline.contracts.base import Contract
from driftline.contracts.words import FailureKind
from driftline.contracts.worker_api import Directive, Finish
from pydantic import ValidationError

from driftline_worker.client import Gone, Refused, Unreachable
from driftline_worker.ending import Reason

UNFINISHED = ".new"
"""A file gets its name once it is whole and locked."""

DIED: Reason = "worker_died"
MESSAGE = "the worker ended without a word; the next one on its disk gave the attempt back"

Tell = Callable[[UUID, str, Finish], Directive]
_log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger("driftline.worker")


class _Note(Contract):
    """A file's content."""

    attempt_id: UUID
    attempt_token: str


@dataclass(frozen=True, slots=True)
class HeldAttempts:
    """The files of all workers that share `folder`."""

    folder: Path

    @contextmanager
    def holding(self, attempt_id: UUID, token: str) -> Iterator[None]:
        """Remembered while the block runs. A disk that takes no file costs only the early return."""
        descriptor = -1
        path: Path | None = None
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor, name = mkstemp(suffix=UNFINISHED, dir=self.folder)
            path = Path(name)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            os.write(descriptor, _Note(attempt_id=attempt_id, attempt_token=token).model_dump_json().encode())
            path = path.rename(self.folder / str(attempt_id))
        except OSError as error:
            _log.warning("attempt not noted down", why=str(error))
        try:
            yield
        finally:
            if path is not None:
                with suppress(OSError):
                    path.unlink()
            if descriptor >= 0:
                os.close(descriptor)

    def give_back(self, tell: Tell) -> int:
        """End the attempts of dead workers by `tell`; how many there were. An absent service leaves the rest noted."""
        given = 0
        for path in sorted(self.folder.iterdir()) if self.folder.is_dir() else ():
            try:
                with path.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    given += _given_back(file.read(), tell)
                    path.unlink(missing_ok=True)
            except OSError:  # its owner lives, or another starting worker has it
                continue
            except Unreachable as error:
                _log.warning("attempts of a dead worker are still noted", why=str(error))
                return given
        return given


def _given_back(content: bytes, tell: Tell) -> bool:
    try:
        note = _Note.model_validate_json(content)
    except ValidationError:  # died while it wrote
        return False
    end = Finish(outcome="failed", batches=0, failure_kind=FailureKind.TRANSIENT, reason=DIED, message=MESSAGE)
    try:
        tell(note.attempt_id, note.attempt_token, end)
    except (Gone, Refused) as error:  # its lease was over before, or its finish had arrived
        _log.info("attempt of a dead worker was over", attempt_id=str(note.attempt_id), why=str(error))
        return False
    _log.info("attempt of a dead worker given back", attempt_id=str(note.attempt_id))
    return True
