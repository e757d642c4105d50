"""Facts of a machine, its files and a task, as an environment line holds them. Shared by the engines; runs no model."""

import hashlib
import importlib.metadata
import json
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

PROBE_TEXTS = (
    "Question: A box holds 12 pencils. How many pencils are in 7 boxes?\nAnswer:", " 7 * 12 = 84\n#### 84",
    "0 1 2 3 4 5 6 7 8 9 10 11 99 100 101 999 1000", "1,234 12,345.67 $18.00 -5 3.14159 50% 1/2 007",
    "She said: \"it's 20:30\"; they didn't (really) agree - [x] {y} <z> a_b c/d e@f #g &h",
    "   leading and   inner   spaces\t\n\n", "naïve café 数学 числа 🙂",
)  # fmt: skip
"""Numbers, punctuation and spaces: where tokenizer classes are known to differ under one and the same file."""

TASK_FIELDS = (
    "task", "output_type", "doc_to_text", "doc_to_target", "description", "target_delimiter", "fewshot_delimiter",
    "fewshot_config", "fewshot_split", "test_split", "num_fewshot", "generation_kwargs", "filter_list", "metric_list",
    "repeats", "process_docs", "gen_prefix", "metadata",
)  # fmt: skip
"""What of a task's configuration decides prompts and scores; lm-eval's own task hash leaves filters and metrics out."""

MAX_VALUE = 1000
"""Longest value of an environment line."""


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's own name, or the machine's architecture where the kernel tells none."""
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def device_facts(device: str) -> dict[str, str]:
    """gpu_type and driver; both `cpu` on a CPU."""
    if device == "cpu":
        return {"gpu_type": "cpu", "driver": "cpu"}
    import torch

    version = Path("/proc/driver/nvidia/version")
    driver = version.read_text(encoding="ascii", errors="replace").splitlines()[0] if version.exists() else "unknown"
    return {"gpu_type": torch.cuda.get_device_name(0), "driver": driver}


def asked_facts(
    spec: Any, lane: Any, config: Mapping[str, Any], *, probe: Sequence[list[int]], max_length: int
) -> dict[str, str]:
    """What both engines' evaluations are asked, by which model: of `spec` its files and questions, of `lane` its words, the
    task's `config`, and the tokens of PROBE_TEXTS."""
    return {
        "model": lane.model_name,
        "model_revision": lane.model_revision,
        "model_weights_sha256": files_sha256(spec.model_path, ("*.safetensors", "*.bin")),
        "model_config_sha256": files_sha256(spec.model_path, ("config.json", "*.py")),
        "tokenizer_probe_sha256": text_sha256(list(probe)),
        "dataset_test_sha256": file_sha256(spec.test_path),
        "dataset_train_sha256": file_sha256(spec.train_path),
        "task": lane.task,
        "task_config_sha256": text_sha256({field: config.get(field) for field in TASK_FIELDS}),
        "filters": compact([entry["name"] for entry in config.get("filter_list") or []]),
        "generation": compact(config["generation_kwargs"]),
        "num_fewshot": str(config["num_fewshot"]),
        "doc_ids_sha256": text_sha256(list(spec.doc_ids)),
        "questions": str(len(spec.doc_ids)),
        "mode": lane.mode_words,
        "backend": lane.backend,
        "engine_arguments": compact(dict(sorted(lane.arguments.items()))),
        "max_length": str(max_length),
        "chat_template": "not applied",
        **{name: importlib.metadata.version(name) for name in ("lm_eval", "transformers", "tokenizers", "datasets")},
        **device_facts(spec.device),
    }


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def files_sha256(folder: Path, patterns: tuple[str, ...]) -> str:
    """One digest over names and contents of the files that fit."""
    files = sorted(file for pattern in patterns for file in folder.glob(pattern))
    return text_sha256([[file.name, file_sha256(file)] for file in files])


def text_sha256(value: object) -> str:
    return hashlib.sha256(compact(value).encode()).hexdigest()


def compact(value: object) -> str:
    """JSON in one canonical form; functions of a task file by their names."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=_named)


def clipped(facts: Mapping[str, Any]) -> dict[str, str]:
    """Values short enough for a line; a longer one is replaced by its digest, since a cut could hide a difference."""
    return {key: value if len(value) <= MAX_VALUE else f"sha256:{text_sha256(value)}" for key, value in facts.items()}


def _named(value: object) -> str:
    return getattr(value, "__qualname__", None) or str(value)


def installed_version(package: str) -> str:
    """The version of an installed distribution, or `none`."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"
