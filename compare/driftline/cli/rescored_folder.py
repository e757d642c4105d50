"""What lm-eval wrote, scored again on this machine alone: no server, no network, and the files are only read."""

from collections.abc import Iterator
from pathlib import Path

from driftline.cli.failure import CommandError
from driftline.contracts.imports import RescoreReport
from driftline.contracts.words import Arm
from driftline.lmeval import BadOutputError, LmEvalOutput, Sample, TaskOutput, open_output
from driftline.lmeval.columns import read_columns
from driftline.lmeval.integrity import task_problems
from driftline.scoring import FILTERS
from driftline.scoring.rescoring import StoredAnswer, rescore, rescore_report
from driftline.scoring.task_config import own_filters

METRIC = "exact_match"

ABOUT_SCORES = frozenset({"mean_mismatch", "stderr_mismatch", "not_reported"})
"""Faults of the reported scores: they are what a rescore is asked about, so they do not end it."""

ARM = Arm.HEAD
"""The integrity check asks for one; its name is taken out of what people read."""


def rescored_folder(place: Path) -> RescoreReport:
    """Every task of the evaluation that has gsm8k's filters.

    Raises:
        CommandError: naming the file and what is wrong with it, or that driftline has no scoring for any task in it.
    """
    try:
        output = open_output(place)
        fitting = {name: task for name, task in output.tasks.items() if _is_gsm8k(task)}
        if not fitting:
            raise CommandError(_why_none(place, output))
        for task in fitting.values():
            _refuse_broken(task)
        return rescore_report([rescore(name, _answers(name, task)) for name, task in fitting.items()])
    except BadOutputError as bad:
        raise CommandError(f"{bad} ({bad.reason})") from bad


def _refuse_broken(task: TaskOutput) -> None:
    problems = task_problems(ARM, task, read_columns(task))
    broken = [
        each.message.removeprefix(f"{ARM}, ") for each in problems if each.blocks and each.code not in ABOUT_SCORES
    ]
    if broken:
        raise CommandError(f"{task.samples_path}: {broken[0]}")


def _is_gsm8k(task: TaskOutput) -> bool:
    """Whether the task has samples under a filter of which driftline has a copy."""
    return task.samples_path is not None and bool(own_filters(task.results.config) & set(task.results.filters))


def _answers(name: str, task: TaskOutput) -> Iterator[StoredAnswer]:
    """One answer a line: the same question comes once under each filter, and each is scored under its own."""
    own = own_filters(task.results.config)
    for sample in task.samples():
        known = sample.filter in own
        filter_name = (
            sample.filter if known or sample.filter not in FILTERS else f"{sample.filter} (another than gsm8k's)"
        )
        yield StoredAnswer(
            doc_id=sample.doc_id, response=sample.response, target=sample.target,
            scores={filter_name: _score(name, sample) if known else 0.0}, extracted={filter_name: sample.extracted},
        )  # fmt: skip


def _score(name: str, sample: Sample) -> float:
    value = sample.values.get(METRIC)
    if value is None or value not in (0.0, 1.0):
        where = f"{name}: question {sample.doc_id} under {sample.filter!r}"
        raise CommandError(f"{where} has {METRIC} {value}; gsm8k's is 0 or 1, so this is no such evaluation")
    return value


def _why_none(place: Path, output: LmEvalOutput) -> str:
    if all(task.samples_path is None for task in output.tasks.values()):
        return f"{place}: no samples beside the results; there is nothing to score again without --log_samples"
    names = ", ".join(output.tasks)
    return f"{place}: driftline has a copy of gsm8k's filters only; the files hold {names}"
