"""What the child of a vLLM lane is asked to do: the spec file as one frozen value. Standard library only."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import cast

from ..hf_engine.refusal import permanent
from ..hf_engine.spec import Argument, EvaluationSpec, LaneSpec

HARNESS_ARGUMENTS = frozenset({"batch_size", "max_gen_toks", "num_fewshot"})
"""What lm-eval takes itself; the others go to vLLM's LLM."""

ENGINE_ARGUMENTS = frozenset(
    {
        "add_bos_token", "attention_backend", "block_size", "dtype", "enable_chunked_prefill", "enable_prefix_caching",
        "enforce_eager", "gpu_memory_utilization", "kv_cache_dtype", "load_format", "mamba_cache_dtype",
        "mamba_ssm_cache_dtype", "max_model_len", "max_num_batched_tokens", "max_num_seqs", "quantization", "seed",
        "tensor_parallel_size", "tokenizer_mode", "trust_remote_code",
    }
)  # fmt: skip
"""vLLM takes many more; these choose how numbers come about. One that is not listed is refused, as a typing error is."""

AUTO = "auto"

VLLMS_OWN = "vllm"
"""The backend of a lane on which vLLM's own operators serve; on another the commit's kernels stand in their place."""

KERNEL_BACKENDS = frozenset({"torch", "triton"})


class VllmLane(LaneSpec):
    """A lane of engine vllm: its schedule is the engine's own."""

    @property
    def prefill_chunk(self) -> int | None:
        return None

    @property
    def mode_words(self) -> str:
        return f"{self.mode} (vllm)"

    @property
    def batch_size(self) -> int | str:
        """Prompts a call, or `auto`: all at once."""
        given = self.arguments.get("batch_size", AUTO)
        return given if isinstance(given, int) else AUTO

    @property
    def on_kernels(self) -> bool:
        """Whether kernels of layout mamba2_varlen stand in the place of vLLM's operators."""
        return self.backend != VLLMS_OWN

    @property
    def engine_arguments(self) -> dict[str, Argument]:
        """What the lane says to vLLM."""
        return {name: value for name, value in self.arguments.items() if name not in HARNESS_ARGUMENTS}


@dataclass(frozen=True)
class EngineEnvironment:
    """The environment the lane names: what it promises, and what the worker found (`sha256` over its distributions).
    `built`: the package in the import folder was built in full, and nothing of the release's is put under it."""

    name: str
    release: str
    pins: Mapping[str, str]
    sha256: str
    built: bool = False


@dataclass(frozen=True, kw_only=True)
class VllmSpec(EvaluationSpec):
    """One evaluation on vLLM. `overlay` is true where the commit under test is a vLLM of its own."""

    environment: EngineEnvironment
    overlay: bool

    @property
    def vllm_lane(self) -> VllmLane:
        return cast("VllmLane", self.lane)


def read_spec(path: Path) -> VllmSpec:
    """The spec in the JSON file at `path`. Raises Refusal (bad_spec) naming what does not fit."""
    try:
        return _spec(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise permanent("bad_spec", f"cannot read the spec {path.name}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise permanent("bad_spec", f"the spec does not fit: {type(error).__name__}: {error}") from error


def _spec(raw: dict[str, object]) -> VllmSpec:
    lane, environment = _lane(_table(raw["lane"])), _table(raw["environment"])
    doc_ids = tuple(cast("list[int]", raw["doc_ids"]))
    if not doc_ids or len(set(doc_ids)) != len(doc_ids):
        raise ValueError("doc_ids must name at least one question, and none twice")
    places = {
        name: Path(str(raw[name])) for name in ("import_dir", "model_path", "task_yaml", "train_path", "test_path")
    }
    if relative := [name for name, path in places.items() if not path.is_absolute()]:
        raise ValueError(f"{relative[0]} must be an absolute path, got {str(places[relative[0]])!r}")
    overlay = raw["layout"] == "vllm"
    if overlay and lane.on_kernels:
        raise ValueError(
            f"lane {lane.name!r} runs the kernels of a package mamba2_varlen, and the repository is vLLM; give the lane "
            f"backend {VLLMS_OWN!r}"
        )
    return VllmSpec(
        lane=lane, **places, doc_ids=doc_ids, block=len(doc_ids), batch_size=len(doc_ids),
        threads=int(cast("int", raw.get("threads", 1))), overlay=overlay,
        environment=EngineEnvironment(
            name=str(environment["name"]), release=str(environment["vllm"]),
            pins=cast("dict[str, str]", environment["pins"]), sha256=str(environment["sha256"]),
            built=environment.get("built") is True,
        ),
    )  # fmt: skip


def _lane(raw: dict[str, object]) -> VllmLane:
    if raw["engine"] != "vllm" or raw["mode"] not in ("V0", "V1"):
        raise ValueError(f"this child serves engine vllm in mode V0 or V1, got {raw['engine']!r} in {raw['mode']!r}")
    arguments = cast("dict[str, Argument]", raw.get("engine_arguments") or {})
    known = HARNESS_ARGUMENTS | ENGINE_ARGUMENTS
    for name in sorted(set(arguments) - known):
        close = get_close_matches(name, sorted(known), n=1)
        meant = f", did you mean {close[0]!r}?" if close else ""
        raise ValueError(f"engine argument {name!r} is unknown{meant} (known are {', '.join(sorted(known))})")
    if raw["backend"] not in KERNEL_BACKENDS | {VLLMS_OWN}:
        raise ValueError(
            f"backend must be one of {VLLMS_OWN}, {', '.join(sorted(KERNEL_BACKENDS))}, got {raw['backend']!r}"
        )
    model = _table(raw["model"])
    return VllmLane(
        name=str(raw["name"]), model_name=str(model["name"]), model_revision=str(model.get("revision") or "local"),
        mode=str(raw["mode"]), backend=str(raw["backend"]), task=str(_table(raw["task"])["name"]),
        gpu_type=cast("str | None", raw.get("gpu_type")), arguments=arguments,
    )  # fmt: skip


def _table(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise TypeError(f"a table was expected, got {type(value).__name__}")
    return value
