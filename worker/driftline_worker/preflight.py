"""What a model's folder lacks for an engine, found before an engine is started: minutes of loading end in a traceback otherwise.

Reads names, JSON and the first bytes of weights; no weight is loaded.
"""

import json
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

from driftline.contracts.lane import Lane
from driftline.contracts.words import FailureKind

from driftline_worker.ending import CannotRun

DTYPES = ("auto", "float32", "float16", "bfloat16", "half", "float")
"""What vLLM takes."""

LARGEST_HEADER_BYTES = 100_000_000
"""safetensors' own limit."""

LENGTH_BYTES = 8

INDEXES = ("model.safetensors.index.json", "pytorch_model.bin.index.json")
"""Which weights lie in which shard."""


def model_faults(lane: Lane, model: Path) -> Iterator[CannotRun]:
    """All that stands against starting an engine on this model: wrong_dtype, weights_broken, remote_code_missing or
    remote_code_refused, each permanent."""
    dtype = lane.engine_arguments.get("dtype", "auto")
    if dtype not in DTYPES:
        yield _permanent("wrong_dtype", f"lane {lane.name}: dtype {dtype!r} is none of {', '.join(DTYPES)}")
    faults = [*json_faults(model), *weight_faults(model)]
    if faults:
        yield _permanent("weights_broken", f"model {lane.model.name}: {'; '.join(faults[:5])}; fetch it anew")
    code = remote_code(model)
    missing = sorted(name for name in code if not (model / name).is_file())
    if missing:
        yield _permanent(
            "remote_code_missing", f"model {lane.model.name} needs {', '.join(missing)}, which {model} has not"
        )
    if code and not lane.engine_arguments.get("trust_remote_code"):
        named = f"{lane.model.name} is code of its own ({', '.join(sorted(code))})"
        message = f"the tokenizer of model {named}; the lane must say trust_remote_code = true"
        yield _permanent("remote_code_refused", message)


def json_faults(model: Path) -> Iterator[str]:
    """Files that every loader reads and that are no JSON: what a download that broke off leaves."""
    for file in sorted({*model.glob("*config.json"), *model.glob("tokenizer.json"), *model.glob("*.index.json")}):
        try:
            json.loads(file.read_bytes())
        except ValueError:
            yield f"{file.name} is no whole JSON file ({file.stat().st_size} bytes)"


def weight_faults(model: Path) -> Iterator[str]:
    """Shards that an index names and nobody has, and files that are shorter or longer than their header says."""
    for index in INDEXES:
        named = set(_json(model / index).get("weight_map", {}).values())
        yield from (f"shard {name} is missing" for name in sorted(named) if not (model / str(name)).is_file())
    for file in sorted(model.glob("*.safetensors")):
        if fault := safetensors_fault(file):
            yield f"{file.name} {fault}"
    for file in sorted(model.glob("pytorch_model*.bin")):
        with file.open("rb") as opened:
            archive = opened.read(2) == b"PK"  # torch.save's since 1.6; its directory is at the end
        if not file.stat().st_size or (archive and not is_zipfile(file)):
            yield f"{file.name} has {file.stat().st_size} bytes and no end"


def safetensors_fault(file: Path) -> str | None:
    """Why this is no whole safetensors file (8 bytes of length, JSON with data offsets, data), or None."""
    size = file.stat().st_size
    with file.open("rb") as opened:
        length = opened.read(LENGTH_BYTES)
        if len(length) < LENGTH_BYTES:
            return f"has {size} bytes and no header"
        (header_bytes,) = struct.unpack("<Q", length)
        if header_bytes > min(LARGEST_HEADER_BYTES, size - LENGTH_BYTES):
            return f"ends inside its header ({size} bytes)"
        try:
            header: dict[str, Any] = json.loads(opened.read(header_bytes))
        except ValueError:
            return "has a header that is no JSON"
    ends = [int(entry["data_offsets"][1]) for name, entry in header.items() if name != "__metadata__"]
    expected = LENGTH_BYTES + header_bytes + max(ends, default=0)
    return None if size == expected else f"has {size} bytes, its header tells {expected}"


def remote_code(model: Path) -> set[str]:
    """Python files that the model's tokenizer is made of. Code for the model itself does not count: vLLM has its own."""
    entries = _json(model / "tokenizer_config.json").get("auto_map", {}).values()
    references = [one for entry in entries for one in (entry if isinstance(entry, list) else [entry])]
    local = (one for one in references if isinstance(one, str) and "--" not in one)
    return {f"{reference.rpartition('.')[0]}.py" for reference in local}


def _json(path: Path) -> dict[str, Any]:
    """A file's table; an empty one where there is none, of which `json_faults` tells."""
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _permanent(reason: str, message: str) -> CannotRun:
    return CannotRun(FailureKind.PERMANENT, reason, message)
