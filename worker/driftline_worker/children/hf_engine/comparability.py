"""What an evaluation ran in, as the two lists of an environment line: what both arms must share, and what is recorded.

Reads the machine, the model's files and the task; runs no model.
"""

import os
import platform
from collections.abc import Mapping

import torch

from ..key_facts import PROBE_TEXTS, asked_facts, clipped, cpu_model, installed_version
from .observed_lm import ObservedLM
from .spec import EvaluationSpec
from .task_subset import FEWSHOT_SEED, SubsetTask


def must_match(spec: EvaluationSpec, lm: ObservedLM, task: SubsetTask) -> dict[str, str]:
    """Facts of which any difference makes two evaluations not comparable (design section 6, rule 2)."""
    probe = [lm.tok_encode(text, add_special_tokens=None) for text in PROBE_TEXTS]
    asked = asked_facts(spec, spec.lane, task.dump_config(), probe=probe, max_length=lm.max_length)
    return clipped(
        asked
        | {
            "seeds": f"fewshot {FEWSHOT_SEED}; greedy decoding",
            "engine": "hf",
            "batch": f"batch_size {spec.batch_size}, block {spec.block}, threads {spec.threads}",
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
