"""What lm-eval's results file states, in the names of the comparability key where it can be said so. Pure.

The names and forms are those of an evaluation's must_match (worker/driftline_worker/children/hf_engine/comparability.py): only
then is a difference between an import and a measurement seen. What the file does not state has no entry.
"""

import json
from collections.abc import Mapping
from typing import Any

from driftline.lmeval import Results, TaskResults

LONGEST = 1000
"""Characters of a value, as in an environment line."""

DEFAULT_MAX_GEN_TOKS = 256
DEFAULT_SEED = 1234
"""lm-eval's own, of its hf and vllm models. Source: lm-eval 0.4.13, models/huggingface.py and models/vllm_causallms.py."""

DETAILS = (
    "model",
    "model_args",
    "batch_size",
    "device",
    "limit",
    "use_cache",
    "gen_kwargs",
    "model_dtype",
    "model_revision",
)
"""Of lm-eval's own configuration."""


def stated_facts(results: Results, task: TaskResults) -> dict[str, str]:
    """The part of the comparability key that the file states."""
    raw, config = results.raw, task.config
    found: dict[str, object] = {
        "task": task.name, "num_fewshot": task.shots, "lm_eval": results.lm_eval_version,
        "transformers": results.transformers_version, "max_length": raw.get("max_length"),
        "engine": _engine(results.config.get("model")),
    }  # fmt: skip
    if isinstance(filters := config.get("filter_list"), list):
        found["filters"] = _compact([entry.get("name") for entry in filters if isinstance(entry, dict)])
    if isinstance(generation := config.get("generation_kwargs"), dict):
        found["generation"] = _compact({"max_gen_toks": _max_gen_toks(results)} | generation)
        found["seeds"] = _seeds(results, generation)
    if "chat_template" in raw and raw["chat_template"] is None:
        found["chat_template"] = "not applied"
    return {name: str(value)[:LONGEST] for name, value in found.items() if value is not None}


def stated_details(results: Results, task: TaskResults) -> dict[str, str]:
    """What else a reader may want to know; nothing here decides anything."""
    raw = results.raw
    found = {name: results.config.get(name) for name in DETAILS} | {
        "model_name": results.model_name, "task_version": task.version, "task_hash": task.task_hash,
        "results_file": results.path.name, "total_questions": task.total, "asked_questions": task.effective,
        "seconds": raw.get("total_evaluation_time_seconds"), "chat_template_sha": raw.get("chat_template_sha"),
        "system_instruction_sha": raw.get("system_instruction_sha"),
    }  # fmt: skip
    return {name: _text(value)[:LONGEST] for name, value in found.items() if value not in (None, {}, "")}


def _max_gen_toks(results: Results) -> object:
    """What answers the engine where the task names no limit: lm-eval writes it nowhere."""
    return _model_arguments(results).get("max_gen_toks", DEFAULT_MAX_GEN_TOKS)


def _seeds(results: Results, generation: Mapping[str, Any]) -> str | None:
    fewshot = results.config.get("fewshot_seed")
    if fewshot is None or generation.get("do_sample") is not False:
        return None
    engine = f" engine {_model_arguments(results).get('seed', DEFAULT_SEED)};" if _is_vllm(results) else ""
    return f"fewshot {fewshot};{engine} greedy decoding"


def _is_vllm(results: Results) -> bool:
    return results.config.get("model") == "vllm"


def _model_arguments(results: Results) -> Mapping[str, Any]:
    """lm-eval 0.4.13 keeps an object; older ones the text `k=v,k=v`, which is not taken apart: values may hold commas."""
    found = results.config.get("model_args")
    return found if isinstance(found, dict) else {}


def _engine(model: object) -> str | None:
    """lm-eval's name of the model's kind, where it is an engine of ours; an API server says nothing of its engine."""
    return str(model) if model in ("hf", "vllm") else None


def _text(value: object) -> str:
    return _compact(value) if isinstance(value, Mapping | list) else str(value)


def _compact(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
