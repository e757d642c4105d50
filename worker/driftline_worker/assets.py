"""Models, tasks and data on this worker: found, and proved to be what the lane names, before a child sees them."""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from driftline.contracts.lane import Lane, ModelSource
from driftline.contracts.words import FailureKind

from driftline_worker.ending import CannotRun
from driftline_worker.faults import Faults

WEIGHTS = ("*.safetensors", "pytorch_model*.bin")
TOKENIZER = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "tokenizer.jsonl", "vocab.json")
DEFAULT_REVISION = "main"


@dataclass(frozen=True, slots=True)
class LaneFiles:
    """Absolute paths. `readable` is all of what a child of this lane has to read."""

    model: Path
    task_yaml: Path
    train: Path
    test: Path
    readable: tuple[Path, ...]

    @classmethod
    def find(cls, lane: Lane, *, assets_root: Path, hub_cache: Path | None) -> Self:
        """The lane's files, verified.

        Raises:
            CannotRun: model_missing, dataset_missing or dataset_changed, each permanent, in the words of all that is so.
        """
        root, task, faults = assets_root.resolve(), lane.task, Faults()
        yaml = faults.check(lambda: _file(root, task.yaml, "task file"))
        train = faults.check(lambda: _verified(_file(root, task.train, "few-shot pool"), task.train_sha256))
        test = faults.check(lambda: _verified(_file(root, task.test, "question file"), task.test_sha256))
        model = faults.check(lambda: _model_folder(lane.model, root, hub_cache))
        faults.refuse()
        assert yaml and train and test and model  # noqa: S101 - or one of them was refused
        task_folder = yaml if yaml.parent == root else yaml.parent
        hub = (model.parents[1],) if lane.model.hub_id is not None and lane.model.path is None else ()
        return cls(model, yaml, train, test, (model, task_folder, train, test, *hub))


def _file(root: Path, name: str, what: str) -> Path:
    path = (root / name).absolute()
    if not path.is_file():
        raise _missing("dataset_missing", f"the {what} {name} is not below {root}; put it there (driftline data fetch)")
    return path


def _verified(path: Path, expected: str) -> Path:
    with path.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != expected:
        raise _missing(
            "dataset_changed",
            f"{path.name} has sha256 {found}, the lane pins {expected}; restore the file or change the lane",
        )
    return path


def _model_folder(model: ModelSource, root: Path, hub_cache: Path | None) -> Path:
    folder = (root / model.path).absolute() if model.path is not None else _snapshot(model, hub_cache)
    parts = (("config.json", ("config.json",)), ("weights", WEIGHTS), ("tokenizer", TOKENIZER))
    lacks = [what for what, patterns in parts if not any(any(folder.glob(pattern)) for pattern in patterns)]
    if lacks:
        what = " and no ".join(lacks) if folder.is_dir() else "files at all"
        raise _missing("model_missing", f"model {model.name}: {folder} has no {what}; put the model there")
    return folder


def _snapshot(model: ModelSource, hub_cache: Path | None) -> Path:
    """The folder of a downloaded revision: a child has no network to download one."""
    if hub_cache is None or model.hub_id is None:
        raise _missing(
            "model_missing",
            f"model {model.name} comes from a hub and this worker has none; set DRIFTLINE_WORKER_HUB_CACHE",
        )
    repository = hub_cache.absolute() / f"models--{model.hub_id.replace('/', '--')}"
    revision = model.revision or DEFAULT_REVISION
    named = repository / "refs" / revision
    commit = named.read_text(encoding="ascii").strip() if named.is_file() else revision
    return repository / "snapshots" / commit


def _missing(reason: str, message: str) -> CannotRun:
    return CannotRun(FailureKind.PERMANENT, reason, message)
