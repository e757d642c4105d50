"""A results file: lm-eval's own table, and what it says of how it came about."""

import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from driftline.lmeval import strict_json
from driftline.lmeval.refusal import BadOutputError

LARGEST: Final = 64 * 2**20
"""Bytes. A results file takes 8 kB a task; a harness of a thousand tasks stays below 20 MB."""

NOT_METRICS: Final = frozenset({"name", "alias", "sample_len", "sample_count", " "})


@dataclass(frozen=True, slots=True)
class TaskResults:
    """What the results file says of one task."""

    name: str
    values: Mapping[tuple[str, str], float]
    """(metric, filter) -> reported score, perhaps not finite"""
    stderrs: Mapping[tuple[str, str], float]
    """only where lm-eval gave a number: it writes "N/A" for a single question"""
    higher_is_better: Mapping[str, bool]
    """metric -> direction; a metric that is not here has none"""
    config: Mapping[str, Any]
    """the task's full configuration: filter_list, metric_list, generation_kwargs, doc_to_text, …"""
    version: str | None
    shots: int | None
    total: int | None
    """questions of the split"""
    effective: int | None
    """questions that were asked, after --limit"""
    task_hash: str | None

    @property
    def metrics(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(metric for metric, _ in self.values))

    @property
    def filters(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(filter_name for _, filter_name in self.values))


@dataclass(frozen=True, slots=True)
class Results:
    """One results file."""

    path: Path
    tasks: Mapping[str, TaskResults]
    config: Mapping[str, Any]
    """model, model_args, batch_size, device, limit, use_cache, seeds, …"""
    lm_eval_version: str | None
    transformers_version: str | None
    model_name: str | None
    date: float | None
    """when the evaluation started, seconds since 1970"""
    raw: Mapping[str, Any]
    """the whole file, for readers of its rarer fields"""


def read_results(path: Path) -> Results:
    """Read one results file.

    Raises:
        BadOutputError: unreadable, bad_json, duplicate_key, …, or not_results if it is no results file of lm-eval.
    """
    try:
        if path.stat().st_size > LARGEST:
            raise BadOutputError(
                "not_results", f"{path}: larger than {LARGEST >> 20} MB, so no results file of lm-eval"
            )
        found = strict_json.parse(path.read_bytes(), str(path))
    except OSError as error:
        raise BadOutputError("unreadable", f"{path}: {error.strerror or error}") from error
    if not isinstance(found, dict) or not isinstance(found.get("results"), dict) or "configs" not in found:
        raise BadOutputError("not_results", f"{path}: not a results file of lm-eval (no results and configs in it)")
    groups = _mapping(found, "group_subtasks")
    names = [name for name in found["results"] if not groups.get(name)]
    return Results(
        path=path, tasks={name: _task(found, name, path) for name in names}, config=_mapping(found, "config"),
        lm_eval_version=_text(found.get("lm_eval_version")), transformers_version=_text(found.get("transformers_version")),
        model_name=_text(found.get("model_name")), date=_number(found.get("date")), raw=found,
    )  # fmt: skip


def _task(found: dict[str, Any], name: str, path: Path) -> TaskResults:
    reported = found["results"][name]
    if not isinstance(reported, dict) or not name.isprintable():
        raise BadOutputError("not_results", f"{path}: the results of {name!r} are no table of lm-eval's")
    values, stderrs = {}, {}
    for key, value in reported.items():
        metric, comma, filter_name = key.rpartition(",")
        number = _number(value)
        if key in NOT_METRICS or not comma or number is None:
            continue
        if not key.isprintable():
            raise BadOutputError(
                "not_results", f"{path}: {name} has a score named {key!r}, which lm-eval does not write"
            )
        if metric.endswith("_stderr"):
            stderrs[metric.removesuffix("_stderr"), filter_name] = number
        else:
            values[metric, filter_name] = number
    counts = _mapping(_mapping(found, "n-samples"), name)
    directions = _mapping(_mapping(found, "higher_is_better"), name)
    return TaskResults(
        name=name, values=values, stderrs=stderrs,
        higher_is_better={metric: each for metric, each in directions.items() if isinstance(each, bool)},
        config=_mapping(_mapping(found, "configs"), name), version=_text(_mapping(found, "versions").get(name)),
        shots=_count(_mapping(found, "n-shot").get(name)), total=_count(counts.get("original")),
        effective=_count(counts.get("effective")), task_hash=_text(_mapping(found, "task_hashes").get(name)),
    )  # fmt: skip


def _mapping(found: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    inner = found.get(name)
    return inner if isinstance(inner, dict) else {}


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return math.inf if abs(value) > sys.float_info.max else float(value)


def _count(value: Any) -> int | None:
    """A whole number; some versions write one as 6.0."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if type(value) is int else None


def _text(value: Any) -> str | None:
    """As text that can be printed: half a surrogate pair is escaped."""
    return None if value is None else str(value).encode("utf-8", "backslashreplace").decode()
