"""What one child may use. Values only; sandbox and supervision enforce them."""

from dataclasses import dataclass
from typing import Self

from driftline_worker.settings import ChildSettings

IMPORT_PHASE = "import"
"""What children call the time in which the code under test is imported."""

OPEN_FILES = 4096
"""Loading a sharded model and its libraries opens a few hundred."""

SMALLEST_FREE_BYTES = 256 << 20
"""A disk with less left is full for every other child, the service and its database."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Sizes in bytes, times in seconds."""

    memory_bytes: int
    scratch_bytes: int
    file_bytes: int
    cpu_seconds: int
    processes: int
    start_seconds: float
    import_seconds: float
    silence_seconds: float
    total_seconds: float
    open_files: int = OPEN_FILES
    smallest_free_bytes: int = SMALLEST_FREE_BYTES

    def silence_in(self, phase: str) -> float:
        """How long a child may say nothing in a phase of its own naming."""
        return min(self.import_seconds, self.silence_seconds) if phase == IMPORT_PHASE else self.silence_seconds

    @classmethod
    def of(cls, settings: ChildSettings) -> Self:
        return cls(
            memory_bytes=settings.memory_bytes, scratch_bytes=settings.scratch_bytes, file_bytes=settings.file_bytes,
            cpu_seconds=settings.cpu_seconds, processes=settings.processes, start_seconds=settings.start_seconds,
            import_seconds=settings.import_seconds, silence_seconds=settings.silence_seconds,
            total_seconds=settings.total_seconds,
        )  # fmt: skip
