"""Free memory of this machine's GPUs: an engine is started only when what an earlier one held is back."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from driftline.contracts.lane import Lane
from driftline.contracts.words import FailureKind

from driftline_worker import nvidia_smi
from driftline_worker.ending import CannotRun

PATIENCE_SECONDS = 120.0
"""A driver gives the memory of a killed process back within seconds."""

LOOK_SECONDS = 2.0
SLACK_MIB = 512
"""A desktop or a monitor on the same GPU takes and gives some hundred; an engine holds tens of thousands."""

DEFAULT_SHARE = 0.9
"""vLLM's own gpu_memory_utilization."""


@dataclass(frozen=True, slots=True)
class GpuMemory:
    """Both in MiB, as nvidia-smi counts."""

    free: int
    total: int


def parse_memory(text: str) -> list[GpuMemory]:
    """One GPU a line. A line that does not tell both sizes ("[N/A]") is left out."""
    found = []
    for line in text.splitlines():
        free, _, total = (part.strip() for part in line.partition(","))
        if free.isdigit() and total.isdigit():
            found.append(GpuMemory(int(free), int(total)))
    return found


def wait_for_memory(
    lane: Lane, read: Callable[[], Sequence[GpuMemory]] | None = None, *, patience_seconds: float = PATIENCE_SECONDS
) -> None:
    """Return when as many GPUs as the lane wants have the share free that its engine will ask for.

    Raises:
        CannotRun: gpu_busy, transient: others hold the memory; no_gpu, permanent: there are fewer GPUs than it wants.
    """
    read = read or read_memory
    wanted = int(lane.engine_arguments.get("tensor_parallel_size", 1))
    share = float(lane.engine_arguments.get("gpu_memory_utilization", DEFAULT_SHARE))
    deadline = time.monotonic() + patience_seconds
    while True:
        seen = read()
        if len(seen) < wanted:
            message = f"lane {lane.name} wants {wanted} GPUs, nvidia-smi tells of {len(seen)}"
            raise CannotRun(FailureKind.PERMANENT, "no_gpu", message)
        if sum(gpu.free >= share * gpu.total for gpu in seen) >= wanted:
            return
        if time.monotonic() >= deadline:
            held = ", ".join(f"{gpu.free} of {gpu.total} MiB free" for gpu in seen)
            message = f"lane {lane.name} needs {share:.0%} of {wanted} GPUs, after {patience_seconds:.0f} s: {held}"
            raise CannotRun(FailureKind.TRANSIENT, "gpu_busy", message)
        threading.Event().wait(min(LOOK_SECONDS, patience_seconds))


def wait_until_back(
    before: Sequence[GpuMemory], read: Callable[[], Sequence[GpuMemory]] | None = None, *,
    patience_seconds: float = PATIENCE_SECONDS,
) -> int:  # fmt: skip
    """Return when each GPU has free again what it had before an engine ran, or when patience ends: the MiB still held.

    The driver may need seconds after the last process is gone, in which the next engine would find too little. What stays
    held then is somebody else's, and the next engine's own look decides.
    """
    read = read or read_memory
    deadline = time.monotonic() + patience_seconds
    while True:
        held = sum(max(0, was.free - is_.free - SLACK_MIB) for was, is_ in zip(before, read(), strict=False))
        if held == 0 or time.monotonic() >= deadline:
            return held
        threading.Event().wait(min(LOOK_SECONDS, patience_seconds))


def read_memory(gpu: int | None = None) -> list[GpuMemory]:
    """What nvidia-smi tells of one GPU, or of all; nothing where it does not run."""
    return parse_memory(nvidia_smi.told("memory.free,memory.total", gpu, form="csv,noheader,nounits"))


def visible(gpu: int | None) -> dict[str, str]:
    """The variables by which a child sees one GPU alone, counted as nvidia-smi counts."""
    return {} if gpu is None else {"CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": str(gpu)}


def read_driver() -> str | None:
    """The driver's version; None where nvidia-smi does not tell it."""
    first = next(iter(nvidia_smi.told("driver_version").splitlines()), "").strip()
    return first if first[:1].isdigit() else None
