"""driftline.toml: the lanes that can be measured. Read once; what is not understood is refused by file, lane, key."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Final, TypeVar

from pydantic import Field, ValidationError

from driftline.contracts.base import Contract, Name
from driftline.contracts.kernel_jobs import Suite, TritonRelease
from driftline.contracts.lane import VARIABLES, Argument, EngineEnvironment, Lane, ModelSource, TaskSource
from driftline.contracts.words import Engine, Mode

SECTIONS: Final = ("models", "tasks", "sources", "environments", "tritons", "suites", "lanes")

MODE_VARIABLE: Final = "VLLM_USE_V1"
"""By which a vLLM that has both engines is told which one to start."""


class ConfigurationError(Exception):
    """driftline.toml cannot be used. The message names the file, the lane or section, the key and the remedy."""


class _LaneEntry(Contract):
    """One [lanes."…"] table as written: model, task and environment by name."""

    model: str
    engine: Engine
    mode: Mode
    backend: Name
    task: str
    questions: int = Field(ge=1)
    default: bool = False
    early_stopping: bool = False
    confirm: bool = True
    gpu_type: str | None = None
    engine_arguments: dict[str, Argument] = Field(default_factory=dict)
    environment: dict[str, str] = Field(default_factory=dict)
    runs_in: str | list[str] | None = None

    @property
    def environments(self) -> list[str]:
        """The environments it may run in, the usual one first."""
        return [self.runs_in] if isinstance(self.runs_in, str) else list(self.runs_in or ())


class _Addresses(Contract):
    """One [sources."…"] table: where a task's files can be fetched. No part of a lane, so that moving them moves nothing."""

    name: Name
    train: str | None = Field(None, pattern=r"^https?://", max_length=1000)
    test: str | None = Field(None, pattern=r"^https?://", max_length=1000)


@dataclass(frozen=True, slots=True)
class Lanes:
    """The configured lanes, by name, in the file's order."""

    all: tuple[Lane, ...]
    default_names: tuple[str, ...]
    tritons: tuple[TritonRelease, ...] = ()
    """under which kernels are compiled"""
    suites: Mapping[str, Suite] = field(default_factory=dict)
    """a repository's URL, or a layout -> its own kernel tests"""
    environments: Mapping[str, tuple[EngineEnvironment, ...]] = field(default_factory=dict)
    """a lane's name -> the environments among which a commit of vLLM has its nearest; for lanes that name several"""

    def suite_of(self, repository: str, layout: str) -> Suite | None:
        """The tests of a repository: those named for it, else those of its layout."""
        return self.suites.get(repository) or self.suites.get(layout)

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
    unknown = sorted(set(document) - set(SECTIONS))
    if unknown:
        raise ConfigurationError(f"{origin}: unknown section {unknown[0]!r}; known are {', '.join(SECTIONS)}")
    parts = _Parts(
        models=_sources(ModelSource, document, "models", origin), tasks=_sources(TaskSource, document, "tasks", origin),
        environments=_sources(EngineEnvironment, document, "environments", origin), origin=origin,
    )  # fmt: skip
    for name in _sources(_Addresses, document, "sources", origin):
        _known(parts.tasks, name, f"{origin}: source {name!r}: task")
    entries = {name: _entry(name, table, origin) for name, table in _tables(document, "lanes")}
    lanes = tuple(parts.lane(name, entry) for name, entry in entries.items())
    default_names = tuple(name for name, entry in entries.items() if entry.default)
    if not default_names:
        raise ConfigurationError(f"{origin}: no lane has default = true; a run that names no lane needs one")
    tritons = tuple(_sources(TritonRelease, document, "tritons", origin).values())
    if tritons and tritons[0].folder is not None:
        raise ConfigurationError(
            f"{origin}: triton {tritons[0].name!r}: the first is the evaluation environment's own and has no folder"
        )
    suites = {name: parts.suite(name, table) for name, table in _tables(document, "suites")}
    several = {
        name: tuple(parts.environments[one] for one in entry.environments)
        for name, entry in entries.items() if len(entry.environments) > 1
    }  # fmt: skip
    return Lanes(lanes, default_names, tritons, suites, several)


_Source = TypeVar("_Source", bound=Contract)


@dataclass(frozen=True, slots=True)
class _Parts:
    """What lanes are made of, by name."""

    models: Mapping[str, ModelSource]
    tasks: Mapping[str, TaskSource]
    environments: Mapping[str, EngineEnvironment]
    origin: str

    def suite(self, name: str, table: Mapping[str, Any]) -> Suite:
        """The tests named for a repository or layout, with their environment put in."""
        where = f"{self.origin}: suite {name!r}"
        runs_in = table.get("runs_in")
        found = None if runs_in is None else _known(self.environments, str(runs_in), f"{where}: environment")
        return _validated(Suite, dict(table) | {"runs_in": found}, where)

    def lane(self, name: str, entry: _LaneEntry) -> Lane:
        """The lane with its model, task and environment put in."""
        where = f"{self.origin}: lane {name!r}"
        model, task = (
            _known(self.models, entry.model, f"{where}: model"),
            _known(self.tasks, entry.task, f"{where}: task"),
        )
        environments = [_known(self.environments, one, f"{where}: environment") for one in entry.environments]
        runs_in = environments[0] if environments else None
        if (runs_in is None) is (entry.engine is Engine.VLLM):
            has = "needs one of environments" if runs_in is None else "takes none"
            raise ConfigurationError(f"{where}: key 'runs_in' names a vLLM environment; engine {entry.engine} {has}")
        if entry.questions > task.total_questions:
            raise ConfigurationError(
                f"{where}: questions {entry.questions}: task {task.name!r} has {task.total_questions}"
            )
        fields = entry.model_dump(exclude={"default", "model", "task", "runs_in"})
        return _validated(Lane, fields | {"name": name, "model": model, "task": task, "runs_in": runs_in}, where)


def _sources(kind: type[_Source], document: Mapping[str, Any], section: str, origin: str) -> dict[str, _Source]:
    singular = section.removesuffix("s")
    return {
        name: _validated(kind, {"name": name} | dict(table), f"{origin}: {singular} {name!r}")
        for name, table in _tables(document, section)
    }


def _tables(document: Mapping[str, Any], section: str) -> Iterable[tuple[str, dict[str, Any]]]:
    for name, table in document.get(section, {}).items():
        yield name, table if isinstance(table, dict) else {"": table}


def _entry(name: str, table: Mapping[str, Any], origin: str) -> _LaneEntry:
    where = f"{origin}: lane {name!r}"
    entry = _validated(_LaneEntry, dict(table), where)
    for key in entry.environment:
        if key not in VARIABLES:
            raise ConfigurationError(f"{where}: environment key {key!r} is not allowed{_meant(key)}")
    if entry.engine is Engine.HF and MODE_VARIABLE in entry.environment:
        raise ConfigurationError(f"{where}: {MODE_VARIABLE} chooses a vLLM's engine and engine hf has none; remove it")
    if entry.early_stopping and entry.engine is not Engine.HF:
        raise ConfigurationError(f"{where}: early_stopping serves engine hf only; remove it, or set it to false")
    said, wanted = entry.environment.get(MODE_VARIABLE), str(int(entry.mode is Mode.V1))
    if said not in (None, wanted):
        raise ConfigurationError(f"{where}: mode {entry.mode} contradicts {MODE_VARIABLE}={said}; make it {wanted}")
    return entry


def _meant(key: str) -> str:
    """What a refused key was probably meant to be, and what there is."""
    close = get_close_matches(key.upper(), sorted(VARIABLES), n=1)
    guess = f", did you mean {close[0]!r}?" if close else ""
    return f"{guess} (allowed are {', '.join(sorted(VARIABLES))})"


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
