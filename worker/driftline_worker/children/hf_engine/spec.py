"""What the child is asked to do: the spec file as one frozen value, refused by name where it does not fit.

Standard library only: a spec is read before anything heavy is imported.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from .refusal import permanent

DEFAULT_CHUNK = 64
"""Tokens of a prefill chunk in mode V1 when the lane names none."""

KNOWN_ARGUMENTS = frozenset(
    {
        "attn_implementation", "batch_size", "dtype", "experts_implementation", "max_gen_toks", "max_length",
        "num_fewshot", "prefill_chunk_size", "trust_remote_code",
    }
)  # fmt: skip
DTYPES = frozenset({"auto", "float32", "bfloat16", "float16"})

Argument = str | int | float | bool


@dataclass(frozen=True)
class LaneSpec:
    """The lane as the child needs it. `arguments` are the lane's engine arguments, all of them known to this engine."""

    name: str
    model_name: str
    model_revision: str
    mode: str
    backend: str
    task: str
    gpu_type: str | None
    arguments: Mapping[str, Argument]

    @property
    def prefill_chunk(self) -> int | None:
        """Tokens of a prefill chunk; None prefills whole prompts."""
        return None if self.mode == "V0" else int(self.arguments.get("prefill_chunk_size", DEFAULT_CHUNK))

    @property
    def mode_words(self) -> str:
        """The mode as pages say it, never bare."""
        chunk = self.prefill_chunk
        return f"{self.mode} (hf: " + ("whole prompt)" if chunk is None else f"prefill in chunks of {chunk})")


@dataclass(frozen=True)
class EvaluationSpec:
    """One evaluation: which kernels, which lane, which questions in which order, and where the files lie."""

    lane: LaneSpec
    import_dir: Path
    model_path: Path
    task_yaml: Path
    train_path: Path
    test_path: Path
    doc_ids: tuple[int, ...]
    block: int
    batch_size: int
    threads: int
    given: Path | None = None
    """folder of the spec file, where the worker may say that enough was asked"""

    @property
    def device(self) -> str:
        return "cpu" if self.lane.gpu_type is None else "cuda"


def read_spec(path: Path) -> EvaluationSpec:
    """The spec in the JSON file at `path`. Raises Refusal (bad_spec) naming what does not fit."""
    try:
        return replace(_spec(json.loads(path.read_text(encoding="utf-8"))), given=path.parent)
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        raise permanent("bad_spec", f"cannot read the spec {path.name}: {error}") from error
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise permanent("bad_spec", f"the spec does not fit: {type(error).__name__}: {error}") from error


def _spec(raw: dict[str, object]) -> EvaluationSpec:
    lane = _lane(cast("dict[str, object]", raw["lane"]))
    doc_ids = tuple(_whole(doc_id, "doc_ids", least=0) for doc_id in cast("list[object]", raw["doc_ids"]))
    if not doc_ids or len(set(doc_ids)) != len(doc_ids):
        raise ValueError("doc_ids must name at least one question, and none twice")
    batch_size = lane.arguments.get("batch_size", raw.get("batch_size", 16))
    return EvaluationSpec(
        lane=lane,
        import_dir=_absolute(raw, "import_dir"),
        model_path=_absolute(raw, "model_path"),
        task_yaml=_absolute(raw, "task_yaml"),
        train_path=_absolute(raw, "train_path"),
        test_path=_absolute(raw, "test_path"),
        doc_ids=doc_ids,
        block=_whole(raw.get("block", 100), "block", least=1),
        batch_size=_whole(batch_size, "batch_size", least=1),
        threads=_whole(raw.get("threads", 1), "threads", least=1),
    )


def _lane(raw: dict[str, object]) -> LaneSpec:
    if raw["engine"] != "hf" or raw["mode"] not in ("V0", "V1"):
        raise ValueError(f"this child serves engine hf in mode V0 or V1, got {raw['engine']!r} in {raw['mode']!r}")
    arguments = cast("dict[str, Argument]", raw.get("engine_arguments") or {})
    if unknown := sorted(set(arguments) - KNOWN_ARGUMENTS):
        raise ValueError(f"engine_arguments {unknown} are unknown; known are {sorted(KNOWN_ARGUMENTS)}")
    if arguments.get("dtype", "float32") not in DTYPES:
        raise ValueError(f"dtype must be one of {sorted(DTYPES)}, got {arguments['dtype']!r}")
    # A chunk of one token goes through the decode step, where transformers looks at no padding mask.
    _whole(arguments.get("prefill_chunk_size", DEFAULT_CHUNK), "prefill_chunk_size", least=2)
    for name in {"max_gen_toks", "max_length"} & set(arguments):
        _whole(arguments[name], name, least=1)
    model = cast("dict[str, object]", raw["model"])
    return LaneSpec(
        name=str(raw["name"]),
        model_name=str(model["name"]),
        model_revision=str(model.get("revision") or "local"),
        mode=str(raw["mode"]),
        backend=str(raw["backend"]),
        task=str(cast("dict[str, object]", raw["task"])["name"]),
        gpu_type=cast("str | None", raw.get("gpu_type")),
        arguments=arguments,
    )


def _absolute(raw: dict[str, object], name: str) -> Path:
    path = Path(str(raw[name]))
    if not path.is_absolute():
        raise ValueError(f"{name} must be an absolute path, got {str(path)!r}")
    return path


def _whole(value: object, name: str, *, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    return value
