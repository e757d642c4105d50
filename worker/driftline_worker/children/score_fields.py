"""lm-eval's own scores as the fields of a scores line. Shared by the engines."""

import math
from collections.abc import Sequence
from typing import Any

from lm_eval.api.task import ConfigurableTask
from lm_eval.utils import hash_string


def score_fields(results: dict[str, Any], samples: Sequence[dict[str, Any]], task: ConfigurableTask) -> dict[str, Any]:
    """The fields of a scores line from what evaluate() returned."""
    [aggregates] = results["results"].values()
    numbers = {key: float(value) for key, value in aggregates.items() if "," in key and isinstance(value, (int, float))}
    metric_of = {key: key.replace("_stderr,", ",") for key in aggregates if "_stderr," in key}
    right: dict[str, list[int]] = {}
    for sample in samples:
        right.setdefault(sample["filter"], [])
        if sample[sample["metrics"][0]] == 1:
            right[sample["filter"]].append(sample["doc_id"])
    return {
        "task_version": str(task.VERSION),
        "num_fewshot": int(task.config.num_fewshot or 0),
        "task_hash": hash_string("".join(s["doc_hash"] + s["prompt_hash"] + s["target_hash"] for s in samples)),
        "metrics": {key: value for key, value in numbers.items() if key not in metric_of},
        "stderr": {metric: _finite(aggregates[key]) for key, metric in metric_of.items()},
        "right": {name: sorted(doc_ids) for name, doc_ids in right.items()},
    }


def _finite(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and math.isfinite(value) else None
