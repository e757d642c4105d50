"""In which settings two evaluations differ: those that make their scores incomparable, and those worth a remark."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from driftline.contracts.compare import Problem
from driftline.lmeval import LmEvalOutput, TaskResults

RECORDED: Final = (
    "lm_eval_version", "transformers_version", "model_name", "model_source", "max_length", "chat_template_sha",
    "system_instruction_sha", "fewshot_as_multiturn",
)  # fmt: skip
"""Of the whole evaluation, named if they differ. What they do to prompts shows in the prompts' hashes."""

LONGEST_VALUE: Final = 60


def task_settings(base: TaskResults, head: TaskResults) -> Iterator[Problem]:
    """Differences in one task's definition. Where data and prompts differ, their hashes tell."""
    if base.shots != head.shots:
        yield _blocking("shots_differ", base, f"{base.shots} shots in base, {head.shots} in head")
    for name in ("output_type", "generation_kwargs", "repeats"):
        one, other = base.config.get(name), head.config.get(name)
        if one != other:
            yield _blocking("settings_differ", base, f"{name} is {_short(one)} in base, {_short(other)} in head")
    ours, theirs = _filters(base.config), _filters(head.config)
    for name in ours.keys() & theirs.keys():
        if ours[name] != theirs[name]:
            yield _blocking("filter_differs", base, f"the filter {name!r} is defined otherwise in head", filter=name)
    one_metric, other_metric = _metrics(base.config), _metrics(head.config)
    for name in one_metric.keys() & other_metric.keys():
        if one_metric[name] != other_metric[name]:
            yield _blocking("metric_differs", base, f"the metric {name} is defined otherwise in head", metric=name)
    if base.version != head.version:
        message = f"{base.name}: version {base.version} in base, {head.version} in head"
        yield Problem(code="version_differs", blocks=False, task=base.name, message=message)


def evaluation_settings(base: LmEvalOutput, head: LmEvalOutput) -> Iterator[Problem]:
    """Differences of the evaluations as a whole: the model, how it ran, the versions. Remarks, for they may be the point."""
    ours, theirs = _recorded(base), _recorded(head)
    for name in sorted(ours.keys() | theirs.keys()):
        one, other = ours.get(name), theirs.get(name)
        if one != other:
            message = f"{name.encode('ascii', 'backslashreplace').decode()}: base {_short(one)}, head {_short(other)}"
            yield Problem(code="recorded_differs", blocks=False, message=message)


def same_model(base: LmEvalOutput, head: LmEvalOutput) -> bool:
    """Whether both evaluations say that the same model ran in the same way."""
    return all(base.results.config.get(name) == head.results.config.get(name) for name in ("model", "model_args"))


def _blocking(code: str, task: TaskResults, message: str, **about: str) -> Problem:
    return Problem(code=code, blocks=True, task=task.name, message=f"{task.name}: {message}", **about)


def _filters(config: Mapping[str, Any]) -> dict[str, Any]:
    return _named(config, "filter_list", "name", "filter")


def _metrics(config: Mapping[str, Any]) -> dict[str, Any]:
    return _named(config, "metric_list", "metric", None)


def _named(config: Mapping[str, Any], field: str, key: str, inner: str | None) -> dict[str, Any]:
    listed = config.get(field)
    entries = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else []
    return {str(each.get(key)): each.get(inner) if inner else each for each in entries}


def _recorded(output: LmEvalOutput) -> dict[str, Any]:
    found = {name: output.results.raw.get(name) for name in RECORDED}
    for name, value in output.results.config.items():
        if isinstance(value, dict):
            found |= {f"{name}.{inner}": each for inner, each in value.items()}
        elif name != "batch_sizes":
            found[name] = value
    return {name: value for name, value in found.items() if value is not None}


def _short(value: Any) -> str:
    text = "none" if value is None else json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 1] + "…"
