"""Everything a worker is told from outside. Nothing else reads the environment."""

import platform
from os import environ
from pathlib import Path
from typing import Any, Literal, Self

from driftline.contracts.base import Name
from driftline.contracts.worker_api import QUEUE_CPU, queue_of
from pydantic import Field, SecretStr, ValidationInfo, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

ENVIRONMENT_PREFIX = "DRIFTLINE_WORKER_"
PROJECT_ROOT = Path(__file__).resolve().parents[2]
"""The checkout this package runs from."""

GIBIBYTE = 1 << 30


class ChildSettings(BaseSettings):
    """What running a child needs, with a service or without one."""

    model_config = SettingsConfigDict(env_prefix=ENVIRONMENT_PREFIX, frozen=True, extra="ignore")

    data_dir: Path = Field(description="Folder of the mirrors and of running children's scratch folders")
    cache_dir: Path | None = Field(default=None, description="Folder of the mirrors; default data_dir/mirrors")
    engines_dir: Path | None = Field(default=None, description="Folder of commits of vLLM; default data_dir/engines")
    scratch_dir: Path | None = Field(default=None, description="Folder of running children; default data_dir/scratch")
    eval_python: Path = Field(
        default=PROJECT_ROOT / ".venv-eval" / "bin" / "python", description="Python that has torch and lm-eval"
    )
    eval_lock: Path | None = Field(
        default=PROJECT_ROOT / "requirements" / "eval.lock", description="What that environment was made from"
    )
    engine_pythons: dict[str, Path] = Field(
        default={}, description="Name of a vLLM environment -> its Python, where it is not where driftline.toml says"
    )
    assets_root: Path = Field(default=PROJECT_ROOT, description="Folder below which models, tasks and data are")
    hub_cache: Path | None = Field(default=None, description="A Hugging Face hub cache with the lanes' models")
    gpu_type: str | None = Field(default=None, description="e.g. H100; unset is a CPU")
    gpu: int | None = Field(default=None, ge=0, description="Which GPU, as nvidia-smi counts; unset: all there are")
    threads: int = Field(default=0, ge=0, description="Threads of one child; 0: cores divided by concurrency")
    sandbox: Literal["auto", "bubblewrap", "plain"] = "auto"
    allow_local_repositories: bool = Field(default=False, description="May a job name a repository on this disk?")

    memory_bytes: int = Field(default=6 * GIBIBYTE, ge=1 << 26, description="Anonymous memory of a child and its own")
    scratch_bytes: int = Field(default=8 * GIBIBYTE, ge=1 << 20, description="Disk a child may fill")
    file_bytes: int = Field(default=2 * GIBIBYTE, ge=1 << 16, description="Largest file a child may write")
    cpu_seconds: int = Field(default=8 * 3600, ge=1, description="CPU time of each process of a child")
    processes: int = Field(default=256, ge=1, description="Processes a child may have at once")
    start_seconds: float = Field(default=60, gt=0, description="Time until a child's first line")
    import_seconds: float = Field(default=60, gt=0, description="Longest import of the kernels under test")
    engine_start_seconds: float = Field(default=900, gt=0, description="Longest start of an engine: weights, graphs")
    first_response_seconds: float = Field(
        default=600, gt=0, description="Longest time from the first prompt to an answer"
    )
    silence_seconds: float = Field(default=120, gt=0, description="Longest time between two lines of a child")
    total_seconds: float = Field(default=4 * 3600, gt=0, description="Longest life of a child")

    @property
    def mirrors(self) -> Path:
        return (self.cache_dir or self.data_dir / "mirrors").absolute()

    @property
    def engines(self) -> Path:
        """Trees of vLLM, checked out or built, by their content."""
        return (self.engines_dir or self.data_dir / "engines").absolute()

    @property
    def scratch(self) -> Path:
        return (self.scratch_dir or self.data_dir / "scratch").absolute()

    @property
    def held_attempts(self) -> Path:
        """Not below `scratch`, which may be a disk that is lost with the worker."""
        return (self.data_dir / "attempts").absolute()


class WorkerSettings(ChildSettings):
    """A worker that serves a queue.

    Raises:
        pydantic.ValidationError: if a setting is missing or wrong.
    """

    service_url: str = Field(pattern=r"^https?://", description="Where the service answers")
    broker_url: SecretStr = Field(description="redis://… or filesystem:///absolute/folder")
    queues: tuple[str, ...] = Field(default=(), description="Default: cpu, or gpu-<type> where there is a GPU")
    concurrency: int = Field(default=1, ge=1, le=64, description="Jobs done at once")
    gpu_lock_dir: Path | None = Field(
        default=None, description="Folder of the locks by which one worker serves a GPU; default the host's /run/lock"
    )
    name: Name = Field(default_factory=lambda: platform.node()[:80] or "worker")
    retry_seconds: float = Field(
        default=150, gt=0, description="How long a service that does not answer is asked again"
    )
    cache_bytes: int = Field(
        default=50 * GIBIBYTE,
        ge=0,
        description="What the mirrors may take; the longest unused go. 0: they are others' to clean",
    )
    engine_bytes: int = Field(default=20 * GIBIBYTE, ge=0, description="What trees of vLLM may take; as cache_bytes")
    cache_days: float = Field(default=30, gt=0, description="A mirror or tree unused for so long goes")
    clean_seconds: float = Field(default=600, gt=0, description="Between two clean-ups")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    @field_validator("concurrency")
    @classmethod
    def _one_job_a_gpu(cls, concurrency: int, info: ValidationInfo) -> int:
        """Two engines on a GPU take each other's memory, and neither's speed says anything."""
        if concurrency > 1 and info.data.get("gpu_type") is not None:
            raise ValueError("a GPU does one job at a time; leave it out, and start one worker a GPU")
        return concurrency

    @model_validator(mode="before")
    @classmethod
    def _read_broker_file(cls, values: dict[str, Any]) -> dict[str, Any]:
        """`broker_url_file` names a file that holds the URL and its password: `docker inspect` does not show a file."""
        path = values.get("broker_url_file") or environ.get(f"{ENVIRONMENT_PREFIX}BROKER_URL_FILE")
        if path is None:
            return values
        try:
            return values | {"broker_url": Path(path).read_text(encoding="utf-8").strip()}
        except OSError as error:
            raise ValueError(f"broker_url_file {path} cannot be read: {error.strerror}") from error

    @classmethod
    def from_environment(cls) -> Self:
        nothing: dict[str, Any] = {}
        return cls(**nothing)

    @property
    def served_queues(self) -> tuple[str, ...]:
        if self.queues:
            return self.queues
        return (QUEUE_CPU,) if self.gpu_type is None else (QUEUE_CPU, queue_of(self.gpu_type))
