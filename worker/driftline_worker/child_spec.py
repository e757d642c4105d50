"""What a child is told: a job becomes a JSON file with absolute paths. What is measured is not decided here."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from driftline.contracts.jobs import BuildSpec, CheckSpec, EvaluateSpec, JobSpec, SuiteSpec
from driftline.contracts.lane import VARIABLES
from driftline.contracts.words import Engine, FailureKind

from driftline_worker.assets import LaneFiles
from driftline_worker.ending import CannotRun
from driftline_worker.gpu_memory import read_memory, wait_for_memory
from driftline_worker.settings import ChildSettings


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """`readable` is what the child may read beside its own folders."""

    text: str
    readable: tuple[Path, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


def child_spec(
    spec: JobSpec, *, import_dir: Path, threads: int, settings: ChildSettings, engine: dict[str, object] | None = None
) -> ChildSpec:
    """The spec file's content. `engine` is what a vLLM child is told of its environment.

    Raises:
        CannotRun: if a lane's files are missing or changed, or it sets a variable it may not.
    """
    layout = spec.source.layout.value
    match spec:
        case BuildSpec():
            return _build(spec, import_dir, threads, settings)
        case CheckSpec():
            device = "cpu" if settings.gpu_type is None else "cuda"
            return _plain({
                "import_dir": str(import_dir), "layout": layout, "backends": spec.backends, "device": device,
                "processes": threads,
            })  # fmt: skip
        case SuiteSpec():
            return _suite(spec, import_dir, settings, engine)
        case EvaluateSpec():
            made = _evaluation(spec, import_dir, threads, settings)
            return made if engine is None else _with_engine(made, layout, engine)


def _plain(values: Mapping[str, object]) -> ChildSpec:
    return ChildSpec(json.dumps(values))


def _build(spec: BuildSpec, import_dir: Path, threads: int, settings: ChildSettings) -> ChildSpec:
    """A Triton whose folder this worker lacks is told to the child all the same, which says so of it."""
    places = {one.name: settings.assets_root / one.folder for one in spec.tritons if one.folder is not None}
    tritons = [
        {
            "name": one.name, "version": one.version, "folder": str(places[one.name]) if one.name in places else None,
            "architectures": one.architectures or spec.architectures,
        }
        for one in spec.tritons
    ]  # fmt: skip
    values = {
        "import_dir": str(import_dir), "layout": spec.source.layout.value, "architectures": spec.architectures,
        "tritons": tritons, "processes": threads,
    }  # fmt: skip
    return ChildSpec(json.dumps(values), tuple(place for place in places.values() if place.is_dir()))


def _suite(spec: SuiteSpec, tree: Path, settings: ChildSettings, engine: dict[str, object] | None) -> ChildSpec:
    """`tree` is where the commit's files are at their own places."""
    suite, kernels = spec.suite, Path(spec.source.kernel_path).parent
    values = {
        "tree": str(tree), "paths": suite.paths, "arguments": suite.arguments,
        "import_from": list(dict.fromkeys([*suite.import_from, *([str(kernels)] if engine is None else [])])),
        "seconds_per_test": suite.seconds_per_test, "device": "cpu" if settings.gpu_type is None else "cuda",
        "engine": str(tree.with_name("import") / "vllm") if engine is not None else None,
    }  # fmt: skip
    return ChildSpec(json.dumps(values))


def _with_engine(made: ChildSpec, layout: str, engine: dict[str, object]) -> ChildSpec:
    values = json.loads(made.text) | {"layout": layout, "environment": engine}
    return replace(made, text=json.dumps(values))


def _evaluation(spec: EvaluateSpec, import_dir: Path, threads: int, settings: ChildSettings) -> ChildSpec:
    lane = spec.lane
    files = LaneFiles.find(lane, assets_root=settings.assets_root, hub_cache=settings.hub_cache)
    for name in lane.environment:
        if name not in VARIABLES:
            message = f"lane {lane.name} sets {name}, which this worker does not pass on; take it out of the lane"
            raise CannotRun(FailureKind.PERMANENT, "environment_refused", message)
    if lane.engine is Engine.VLLM and lane.gpu_type is not None:
        wait_for_memory(lane, lambda: read_memory(settings.gpu))
    values = {
        "import_dir": str(import_dir), "lane": lane.model_dump(mode="json"), "model_path": str(files.model),
        "task_yaml": str(files.task_yaml), "train_path": str(files.train), "test_path": str(files.test),
        "doc_ids": spec.doc_ids, "block": spec.block, "batch_size": spec.batch_size, "threads": threads,
    }  # fmt: skip
    return ChildSpec(json.dumps(values), files.readable, dict(lane.environment))
