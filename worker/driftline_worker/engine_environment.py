"""The vLLM environment that a lane names, on this worker: found, asked what it is, told to the child."""

from dataclasses import dataclass

from driftline.contracts.lane import EngineEnvironment as Wanted
from driftline.contracts.lane import Lane
from driftline.contracts.words import FailureKind

from driftline_worker.ending import CannotRun
from driftline_worker.eval_environment import EnvironmentBroken, EvalEnvironment
from driftline_worker.settings import ChildSettings


@dataclass(frozen=True, slots=True)
class EngineEnvironment:
    """`found` is what runs the child; `told` is what the child holds its engine against."""

    found: EvalEnvironment
    told: dict[str, object]


def engine_environment(lane: Lane, settings: ChildSettings) -> EngineEnvironment:
    """The environment of a vLLM lane.

    Raises:
        CannotRun: environment_missing, which no commit can help.
    """
    if lane.runs_in is None:
        raise _missing(f"lane {lane.name} names no vLLM environment; give it runs_in in driftline.toml")
    return named_environment(lane.runs_in, f"lane {lane.name}", settings)


def named_environment(wanted: Wanted, who: str, settings: ChildSettings) -> EngineEnvironment:
    """One of driftline.toml's environments on this worker; `who` is what asks for it.

    Raises:
        CannotRun: environment_missing, which no commit can help.
    """
    python = settings.engine_pythons.get(wanted.name, settings.assets_root / wanted.python)
    lock = None if wanted.lock is None else settings.assets_root / wanted.lock
    try:
        found = EvalEnvironment.probe(python, lock)
    except EnvironmentBroken as error:
        raise _missing(
            f"{who} runs in environment {wanted.name!r}, which is not on this worker ({error}); make it, or say "
            "where it is: DRIFTLINE_WORKER_ENGINE_PYTHONS"
        ) from error
    told: dict[str, object] = {
        "name": wanted.name,
        "vllm": wanted.vllm,
        "pins": dict(wanted.pins),
        "sha256": found.identity,
    }
    return EngineEnvironment(found, told)


def _missing(message: str) -> CannotRun:
    return CannotRun(FailureKind.PERMANENT, "environment_missing", message)
