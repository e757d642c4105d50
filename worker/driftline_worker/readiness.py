"""All that an evaluation needs on this worker, looked at before anything is checked out, built or started."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from driftline.contracts.lane import Lane
from driftline.contracts.words import Engine, FailureKind

from driftline_worker.assets import LaneFiles
from driftline_worker.ending import CannotRun
from driftline_worker.engine_environment import EngineEnvironment, engine_environment
from driftline_worker.engine_fit import driver_fault, environment_faults
from driftline_worker.faults import Faults
from driftline_worker.gpu_memory import GpuMemory, read_driver, read_memory, wait_for_memory
from driftline_worker.preflight import model_faults
from driftline_worker.settings import ChildSettings


@dataclass(frozen=True, slots=True)
class Gpus:
    """How this machine's GPUs are asked."""

    memory: Callable[[], Sequence[GpuMemory]] = read_memory
    driver: Callable[[], str | None] = read_driver


def refuse_unready(lane: Lane, settings: ChildSettings, gpus: Gpus | None = None) -> EngineEnvironment | None:
    """The vLLM environment of a lane whose files, environment and GPU are there and fit; None for engine hf.

    GPU memory that others hold is waited for later; here it is told beside what no waiting mends.

    Raises:
        CannotRun: the gravest reason, and in words everything that is missing or does not fit.
    """
    gpus, faults = gpus or Gpus(lambda: read_memory(settings.gpu)), Faults()
    files = faults.check(
        lambda: LaneFiles.find(lane, assets_root=settings.assets_root, hub_cache=settings.hub_cache)
    )  # fmt: skip
    if lane.gpu_type != settings.gpu_type and lane.gpu_type is not None:
        has = "no GPU" if settings.gpu_type is None else f"a {settings.gpu_type}"
        message = f"lane {lane.name} wants a {lane.gpu_type}, and this worker has {has}"
        faults.add([CannotRun(FailureKind.PERMANENT, "no_gpu", message)])
    engine = None
    if lane.engine is Engine.VLLM:
        engine = faults.check(lambda: engine_environment(lane, settings))
        if files is not None:
            faults.add(model_faults(lane, files.model))
        _look_at_fit(lane, engine, gpus, faults)
        if faults and lane.gpu_type == settings.gpu_type and lane.gpu_type is not None:
            faults.check(lambda: wait_for_memory(lane, gpus.memory, patience_seconds=0))
    faults.refuse()
    return engine


def _look_at_fit(lane: Lane, engine: EngineEnvironment | None, gpus: Gpus, faults: Faults) -> None:
    if engine is None or lane.runs_in is None:
        return
    found = engine.found
    faults.add(environment_faults(lane, lane.runs_in, found.distributions, found.engine_requirements))
    fault = None if lane.gpu_type is None else driver_fault(found.distributions, gpus.driver())
    faults.add([fault] if fault is not None else [])
