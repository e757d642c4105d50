"""One worker a GPU: a lock of this host on each GPU that a worker serves, which goes when the worker does, however it ends."""

import fcntl
import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import structlog

from driftline_worker import nvidia_smi
from driftline_worker.settings import WorkerSettings

UUID = "GPU-"
"""What the driver's name of a GPU begins with. It is the same in every container, where an index is not."""

FOLDERS = (Path("/run/lock"), Path("/tmp"))  # noqa: S108 - whose files nobody trusts: a lock is all that is taken of them
"""The first that everybody of this host may write to. Nothing clears away what is old in /run/lock."""

HOLDER_BYTES = 300
MODE = 0o666
"""The next worker may be another user's."""

_log: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger("driftline.worker")


class GpuHeld(Exception):  # noqa: N818 - what it is
    """Another worker serves the GPU, or nobody can tell. The message says who, and what to do."""


@contextmanager
def gpus_held(settings: WorkerSettings) -> Iterator[None]:
    """Hold every GPU that the worker serves for the length of the block; a worker on a CPU holds nothing.

    Raises:
        GpuHeld: if another process of this host serves one of them.
    """
    if settings.gpu_type is None:
        yield
        return
    folder = settings.gpu_lock_dir or _folder()
    with ExitStack() as held:
        for name in _names(settings.gpu):
            descriptor = _opened(folder / f"driftline-{name}.lock")
            held.callback(os.close, descriptor)
            _take(descriptor, folder / f"driftline-{name}.lock", name, settings)
        yield


def _take(descriptor: int, path: Path, name: str, settings: WorkerSettings) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(descriptor, HOLDER_BYTES, 0).decode("utf-8", "replace").strip()
        gpu = name if settings.gpu is None else f"{settings.gpu} ({name})"
        message = f"GPU {gpu} is served already, by {holder or 'a process that begins just now'}, which holds {path}; "
        raise GpuHeld(message + "stop that worker, or let this one serve another GPU (--gpu)") from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"process {os.getpid()} on {platform.node()}, worker {settings.name}\n".encode(), 0)


def _opened(path: Path) -> int:
    """A file that stays: were it removed, two workers could hold two files of one name.

    Raises:
        GpuHeld: if it cannot be opened.
    """
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with suppress(FileExistsError):
            descriptor = os.open(path, flags | os.O_CREAT | os.O_EXCL, MODE)
            os.fchmod(descriptor, MODE)  # whatever the umask took
            return descriptor
        return os.open(path, flags)
    except OSError as error:
        message = f"{path}: {error.strerror}; without it nobody can tell whether another worker serves this GPU: "
        raise GpuHeld(
            message + "name a folder that every worker of this host may write to (DRIFTLINE_WORKER_GPU_LOCK_DIR)"
        ) from error


def _names(gpu: int | None) -> Sequence[str]:
    """Of the GPU, or of all there are; an index, where the driver tells no UUID."""
    found = [line.strip() for line in nvidia_smi.told("uuid", gpu).splitlines() if line.startswith(UUID)]
    if not found:
        _log.warning("nvidia-smi tells no UUID; a worker in another container is not seen", gpu=gpu)
    return found or [f"index-{gpu or 0}"]


def _folder() -> Path:
    return next((folder for folder in FOLDERS if os.access(folder, os.W_OK)), FOLDERS[-1])
