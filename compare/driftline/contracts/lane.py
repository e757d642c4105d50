"""A lane: one way to measure. Read from driftline.toml, frozen into each run, hashed into the comparability key."""

from typing import Annotated

from pydantic import Field, StringConstraints

from driftline.contracts.base import Contract, Digest, Name
from driftline.contracts.words import Engine, Mode

Argument = str | int | float | bool

VARIABLES = frozenset({
    "VLLM_USE_V1", "VLLM_ATTENTION_BACKEND", "VLLM_USE_TRITON_FLASH_ATTN", "VLLM_USE_FLASHINFER_SAMPLER",
    "VLLM_FLASH_ATTN_VERSION", "VLLM_ENABLE_V1_MULTIPROCESSING", "VLLM_BATCH_INVARIANT", "VLLM_CPU_KVCACHE_SPACE",
    "TRITON_DEFAULT_FP_FUSION", "CUBLAS_WORKSPACE_CONFIG",
})  # fmt: skip
"""The environment variables that a lane may set: they choose an engine or a kernel, never a program or a folder. vLLM
ignores one it does not know, so that a typing error (LLM_USE_V1, seen in the wild) would quietly measure another engine:
only a closed list can catch it."""

_PART = r"\.?[A-Za-z0-9_][A-Za-z0-9._+-]*"
InsideAssets = Annotated[str, StringConstraints(pattern=rf"^{_PART}(/{_PART})*$", max_length=300)]
"""A path below the worker's assets root."""

Version = Annotated[str, StringConstraints(pattern=r"^[0-9][A-Za-z0-9.+_-]{0,60}$")]


class ModelSource(Contract):
    """Where a model's files are: a folder under the worker's assets, or a hub id with a pinned revision."""

    name: Name
    path: str | None = Field(None, description="Folder relative to the worker's assets root, e.g. canary/model")
    hub_id: str | None = None
    revision: str | None = None
    architecture: str | None = Field(
        None, description="What vLLM calls it, e.g. GraniteMoeHybridForCausalLM; no part of what is measured"
    )


class TaskSource(Contract):
    """An lm-eval task and its pinned data."""

    name: Name = Field(description="lm-eval task name, e.g. gsm8k or gsm8k_canary")
    yaml: str = Field(description="Task file relative to the worker's assets root")
    train: str = Field(description="Few-shot pool, JSON lines, relative to the assets root")
    test: str = Field(description="Questions, JSON lines, relative to the assets root")
    test_sha256: Digest
    train_sha256: Digest
    total_questions: int = Field(ge=1)


class EngineEnvironment(Contract):
    """A Python environment with one release of vLLM, told from others by name. A worker refuses one that is not as
    pinned."""

    name: Name
    vllm: Version = Field(description="Release of vLLM whose compiled parts are used")
    python: InsideAssets = Field(description="Its interpreter, relative to the worker's assets root")
    lock: InsideAssets | None = Field(None, description="What it was made from, relative to the assets root")
    pins: dict[str, Version] = Field(default_factory=dict, description="distribution -> version it must have")
    build: list[str] = Field(
        default_factory=list, max_length=40, description="The command that builds a commit with other compiled sources; "
        "{python} and {out} are put in. None: such a commit is unsupported",
    )  # fmt: skip
    build_seconds: int = Field(default=4 * 3600, ge=1, le=24 * 3600, description="Longest such build")


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
    environment: dict[str, str] = Field(default_factory=dict, description="Environment variables, of VARIABLES only")
    runs_in: EngineEnvironment | None = Field(None, description="None: the worker's own evaluation environment")
    gpu_type: str | None = Field(None, description="None is a CPU")
    early_stopping: bool = Field(
        default=False,
        description="May it stop before all questions are asked? Engine hf only; no part of what is measured",
    )
    confirm: bool = Field(
        default=True,
        description="Is a first hit measured once more by a fresh pair? No part of what is measured",
    )
