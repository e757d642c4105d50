"""What one child may use. Values only; sandbox and supervision enforce them."""

from dataclasses import dataclass
from typing import Self

from driftline_worker.settings import ChildSettings

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
    engine_start_seconds: float = 900
    first_response_seconds: float = 600
    open_files: int = OPEN_FILES
    smallest_free_bytes: int = SMALLEST_FREE_BYTES

    def silence_in(self, phase: str) -> float:
        """How long a child may say nothing in a phase of its own naming.

        `import`: the code under test is imported. `start_engine`: until a vLLM engine is up, of which nothing can be told
        from inside. `first_response`: from the first prompt to the first answer, an engine's last compilations in it.
        """
        match phase:
            case "import":
                return min(self.import_seconds, self.silence_seconds)
            case "start_engine":
                return self.engine_start_seconds
            case "first_response":
                return self.first_response_seconds
            case _:
                return self.silence_seconds

    def too_little_left(self, free_bytes: int) -> str:
        needed = self.smallest_free_bytes >> 20
        return f"{free_bytes >> 20} MB are left on the worker's disk, {needed} MB are needed; free some"

    @classmethod
    def of(cls, settings: ChildSettings) -> Self:
        return cls(
            memory_bytes=settings.memory_bytes, scratch_bytes=settings.scratch_bytes, file_bytes=settings.file_bytes,
            cpu_seconds=settings.cpu_seconds, processes=settings.processes, start_seconds=settings.start_seconds,
            import_seconds=settings.import_seconds, silence_seconds=settings.silence_seconds,
            total_seconds=settings.total_seconds, engine_start_seconds=settings.engine_start_seconds,
            first_response_seconds=settings.first_response_seconds,
        )  # fmt: skip
