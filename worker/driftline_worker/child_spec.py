"""What a child is told: a job becomes a JSON file with absolute paths. What is measured is not decided here."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from driftline.contracts.jobs import BuildSpec, CheckSpec, EvaluateSpec, JobSpec
from driftline.contracts.words import FailureKind

from driftline_worker.assets import LaneFiles
from driftline_worker.ending import CannotRun
from driftline_worker.settings import ChildSettings

_LANE_VARIABLE = re.compile(r"(VLLM|TRITON|FLASHINFER|TORCH|NCCL|CUBLAS)_[A-Z0-9_]{1,60}")
"""Variables that choose an engine or a kernel; never one that chooses a program, a library or a folder."""

PATHS = ("_CACHE_DIR", "_PATH", "_HOME", "_LIBRARY", "_DIR")


@dataclass(frozen=True, slots=True)
class ChildSpec:
    """`readable` is what the child may read beside its own folders."""

    text: str
    readable: tuple[Path, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)


def child_spec(spec: JobSpec, *, import_dir: Path, threads: int, settings: ChildSettings) -> ChildSpec:
    """The spec file's content.

    Raises:
        CannotRun: if a lane's files are missing or changed, or it sets a variable it may not.
    """
    layout = spec.source.layout.value
    match spec:
        case BuildSpec():
            return _plain({"import_dir": str(import_dir), "layout": layout, "architectures": spec.architectures})
        case CheckSpec():
            device = "cpu" if settings.gpu_type is None else "cuda"
            found = {"import_dir": str(import_dir), "layout": layout, "backends": spec.backends, "device": device}
            return _plain(found)
        case EvaluateSpec():
            return _evaluation(spec, import_dir, threads, settings)


def _plain(values: Mapping[str, object]) -> ChildSpec:
    return ChildSpec(json.dumps(values))


def _evaluation(spec: EvaluateSpec, import_dir: Path, threads: int, settings: ChildSettings) -> ChildSpec:
    lane = spec.lane
    files = LaneFiles.find(lane, assets_root=settings.assets_root, hub_cache=settings.hub_cache)
    for name in lane.environment:
        if not _LANE_VARIABLE.fullmatch(name) or name.endswith(PATHS):
            message = f"lane {lane.name} sets {name}, which this worker does not pass on; take it out of the lane"
            raise CannotRun(FailureKind.PERMANENT, "environment_refused", message)
    values = {
        "import_dir": str(import_dir), "lane": lane.model_dump(mode="json"), "model_path": str(files.model),
        "task_yaml": str(files.task_yaml), "train_path": str(files.train), "test_path": str(files.test),
        "doc_ids": spec.doc_ids, "block": spec.block, "batch_size": spec.batch_size, "threads": threads,
    }  # fmt: skip
    return ChildSpec(json.dumps(values), files.readable, dict(lane.environment))
