"""A lane: one way to measure. Read from driftline.toml, frozen into each run, hashed into the comparability key."""

from pydantic import Field

from driftline.contracts.base import Contract, Digest, Name
from driftline.contracts.words import Engine, Mode

Argument = str | int | float | bool


class ModelSource(Contract):
    """Where a model's files are: a folder under the worker's assets, or a hub id with a pinned revision."""

    name: Name
    path: str | None = Field(None, description="Folder relative to the worker's assets root, e.g. canary/model")
    hub_id: str | None = None
    revision: str | None = None


class TaskSource(Contract):
    """An lm-eval task and its pinned data."""

    name: Name = Field(description="lm-eval task name, e.g. gsm8k or gsm8k_canary")
    yaml: str = Field(description="Task file relative to the worker's assets root")
    train: str = Field(description="Few-shot pool, JSON lines, relative to the assets root")
    test: str = Field(description="Questions, JSON lines, relative to the assets root")
    test_sha256: Digest
    train_sha256: Digest
    total_questions: int = Field(ge=1)


class Lane(Contract):
    """model x engine x mode x kernel backend x task x engine arguments x GPU type."""

    name: Name
    model: ModelSource
    engine: Engine
    mode: Mode
    backend: Name = Field(description="Kernel backend: torch or triton for engine hf, vllm for engine vllm")
    task: TaskSource
    questions: int = Field(ge=1, description="How many questions of the fixed order are asked")
    engine_arguments: dict[str, Argument] = Field(default_factory=dict)
    environment: dict[str, str] = Field(
        default_factory=dict, description="Environment variables, allow-listed keys only"
    )
    gpu_type: str | None = Field(None, description="None is a CPU")
