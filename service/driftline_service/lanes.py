"""driftline.toml: the lanes this service knows. Read at start; what is not understood is refused by file, lane, key."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from driftline.contracts.base import Contract, Name
from driftline.contracts.lane import Argument, Lane, ModelSource, TaskSource
from driftline.contracts.words import Engine, Mode
from pydantic import Field, ValidationError

ENVIRONMENT_KEYS = frozenset({
    "VLLM_USE_V1", "VLLM_ATTENTION_BACKEND", "VLLM_USE_TRITON_FLASH_ATTN", "VLLM_USE_FLASHINFER_SAMPLER",
    "VLLM_FLASH_ATTN_VERSION", "VLLM_ENABLE_V1_MULTIPROCESSING", "TRITON_DEFAULT_FP_FUSION",
    "CUBLAS_WORKSPACE_CONFIG", "OMP_NUM_THREADS",
})  # fmt: skip
"""The variables a lane may set. vLLM ignores one it does not know, so that a typing error (LLM_USE_V1, seen in the
wild) would quietly measure another engine: only a closed list can catch it."""


class ConfigurationError(Exception):
    """driftline.toml cannot be used. The message names the file, the lane or section, the key and the remedy."""


class _LaneEntry(Contract):
    """One [lanes."…"] table as written: model and task by name."""

    model: str
    engine: Engine
    mode: Mode
    backend: Name
    task: str
    questions: int = Field(ge=1)
    default: bool = False
    gpu_type: str | None = None
    engine_arguments: dict[str, Argument] = Field(default_factory=dict)
    environment: dict[str, str] = Field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lanes:
    """The configured lanes, by name, in the file's order."""

    all: tuple[Lane, ...]
    default_names: tuple[str, ...]

    def named(self, name: str) -> Lane | None:
        return next((lane for lane in self.all if lane.name == name), None)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(lane.name for lane in self.all)


def read_lanes(path: Path) -> Lanes:
    """Parse and check the file.

    Raises:
        ConfigurationError: if the file is missing, no TOML, or holds anything that is not understood.
    """
    try:
        return parse_lanes(path.read_text(encoding="utf-8"), origin=str(path))
    except OSError as error:
        raise ConfigurationError(f"{path}: cannot be read ({error.strerror}); set DRIFTLINE_CONFIG_PATH") from error


def parse_lanes(text: str, *, origin: str) -> Lanes:
    """As `read_lanes`, from the file's text; `origin` is what errors call it."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ConfigurationError(f"{origin}: not valid TOML: {error}") from error
    unknown = sorted(set(document) - {"models", "tasks", "lanes"})
    if unknown:
        raise ConfigurationError(f"{origin}: unknown section {unknown[0]!r}; known are models, tasks and lanes")
    models = {name: _named(ModelSource, name, table, f"{origin}: model") for name, table in _tables(document, "models")}
    tasks = {name: _named(TaskSource, name, table, f"{origin}: task") for name, table in _tables(document, "tasks")}
    entries = {name: _entry(name, table, origin) for name, table in _tables(document, "lanes")}
    lanes = tuple(_lane(name, entry, models=models, tasks=tasks, origin=origin) for name, entry in entries.items())
    default_names = tuple(name for name, entry in entries.items() if entry.default)
    if not default_names:
        raise ConfigurationError(f"{origin}: no lane has default = true; a run that names no lane needs one")
    return Lanes(lanes, default_names)


_Source = TypeVar("_Source", bound=Contract)


def _tables(document: Mapping[str, Any], section: str) -> Iterable[tuple[str, dict[str, Any]]]:
    for name, table in document.get(section, {}).items():
        yield name, table if isinstance(table, dict) else {"": table}


def _named(kind: type[_Source], name: str, table: Mapping[str, Any], where: str) -> _Source:
    return _validated(kind, {"name": name} | dict(table), f"{where} {name!r}")


def _entry(name: str, table: Mapping[str, Any], origin: str) -> _LaneEntry:
    where = f"{origin}: lane {name!r}"
    entry = _validated(_LaneEntry, dict(table), where)
    for key in entry.environment:
        if key not in ENVIRONMENT_KEYS:
            allowed = ", ".join(sorted(ENVIRONMENT_KEYS))
            raise ConfigurationError(f"{where}: environment key {key!r} is not allowed; allowed are {allowed}")
    return entry


def _lane(
    name: str, entry: _LaneEntry, *, models: Mapping[str, ModelSource], tasks: Mapping[str, TaskSource], origin: str
) -> Lane:
    where = f"{origin}: lane {name!r}"
    model, task = _known(models, entry.model, f"{where}: model"), _known(tasks, entry.task, f"{where}: task")
    if entry.questions > task.total_questions:
        raise ConfigurationError(f"{where}: questions {entry.questions}: task {task.name!r} has {task.total_questions}")
    fields = entry.model_dump(exclude={"default", "model", "task"})
    return _validated(Lane, fields | {"name": name, "model": model, "task": task}, where)


def _known(table: Mapping[str, _Source], name: str, where: str) -> _Source:
    if name not in table:
        raise ConfigurationError(f"{where} {name!r} is not defined; defined are {', '.join(sorted(table)) or 'none'}")
    return table[name]


def _validated(kind: type[_Source], fields: dict[str, Any], where: str) -> _Source:
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join(str(part) for part in first["loc"]) or "the table"
        known = f"; known keys are {', '.join(kind.model_fields)}" if first["type"] == "extra_forbidden" else ""
        raise ConfigurationError(f"{where}: key {key!r}: {first['msg']}{known}") from error
