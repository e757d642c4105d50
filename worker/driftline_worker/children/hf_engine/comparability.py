"""What an evaluation ran in, as the two lists of an environment line: what both arms must share, and what is recorded.

Reads the machine, the model's files and the task; runs no model.
"""

import importlib.metadata
import os
import platform
from collections.abc import Mapping

import torch

from ..key_facts import (
    PROBE_TEXTS,
    TASK_FIELDS,
    clipped,
    compact,
    cpu_model,
    device_facts,
    file_sha256,
    files_sha256,
    installed_version,
    text_sha256,
)
from .observed_lm import ObservedLM
from .spec import EvaluationSpec
from .task_subset import FEWSHOT_SEED, SubsetTask


def must_match(spec: EvaluationSpec, lm: ObservedLM, task: SubsetTask) -> dict[str, str]:
    """Facts of which any difference makes two evaluations not comparable (design section 6, rule 2)."""
    config, lane = task.dump_config(), spec.lane
    return clipped(
        {
            "model": lane.model_name,
            "model_revision": lane.model_revision,
            "model_weights_sha256": files_sha256(spec.model_path, ("*.safetensors", "*.bin")),
            "model_config_sha256": files_sha256(spec.model_path, ("config.json",)),
            "tokenizer_probe_sha256": text_sha256(
                [lm.tok_encode(text, add_special_tokens=None) for text in PROBE_TEXTS]
            ),
            "dataset_test_sha256": file_sha256(spec.test_path),
            "dataset_train_sha256": file_sha256(spec.train_path),
            "task": lane.task,
            "task_config_sha256": text_sha256({field: config.get(field) for field in TASK_FIELDS}),
            "filters": compact([entry["name"] for entry in config.get("filter_list") or []]),
            "generation": compact(config["generation_kwargs"]),
            "num_fewshot": str(config["num_fewshot"]),
            "seeds": f"fewshot {FEWSHOT_SEED}; greedy decoding",
            "doc_ids_sha256": text_sha256(list(spec.doc_ids)),
            "questions": str(len(spec.doc_ids)),
            "engine": "hf",
            "mode": lane.mode_words,
            "backend": lane.backend,
            "engine_arguments": compact(dict(sorted(lane.arguments.items()))),
            "batch": f"batch_size {spec.batch_size}, block {spec.block}, threads {spec.threads}",
            "max_length": str(lm.max_length),
            "chat_template": "not applied",
            **{
                name: importlib.metadata.version(name) for name in ("lm_eval", "transformers", "tokenizers", "datasets")
            },
            **device_facts(spec.device),
            "TRITON_DEFAULT_FP_FUSION": os.environ.get("TRITON_DEFAULT_FP_FUSION", "unset"),
        }
    )


def recorded(spec: EvaluationSpec, lm: ObservedLM, served: Mapping[str, str]) -> dict[str, str]:
    """Facts that are told beside a verdict. `served` names the module that served each kernel operator."""
    model = lm.model
    return clipped(
        {
            "engine": "hf",
            "mode_seen": spec.lane.mode_words,
            "python": platform.python_version(),
            "torch": torch.__version__,
            "triton": installed_version("triton"),
            "accelerate": installed_version("accelerate"),
            "dtype": str(model.dtype).removeprefix("torch."),
            "attention": str(model.config._attn_implementation),
            "experts": str(getattr(model.config, "_experts_implementation", None)),
            "graphs": "eager",
            "threads": str(torch.get_num_threads()),
            "cpu": cpu_model(),
            **{f"served.{operator}": module for operator, module in served.items()},
        }
    )
