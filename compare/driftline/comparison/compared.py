"""The comparison of two evaluations: which cells there are, what keeps one from being tested, and the verdict."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from driftline.comparison.form import format_remarks
from driftline.comparison.pairing import Pairs, pair, unpaired
from driftline.comparison.settings import evaluation_settings, same_model, task_settings
from driftline.contracts.cell import Comparison
from driftline.contracts.compare import CompareReport, Problem
from driftline.contracts.words import VERDICTS_WORST_FIRST, Arm, Verdict
from driftline.judge.cell import Cell, CellName, binary_cell, comparison, mean_cell, unmeasured
from driftline.lmeval import BadOutputError, LmEvalOutput, TaskOutput, TaskResults
from driftline.lmeval.columns import TaskColumns, read_columns
from driftline.lmeval.integrity import task_problems
from driftline.statistics.holm import adjusted


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to compare. Empty selections take everything; margins are in the unit of the metric."""

    margin: float
    metric_margins: Mapping[str, float] = field(default_factory=dict)
    tasks: frozenset[str] = frozenset()
    filters: frozenset[str] = frozenset()
    metrics: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class TestedCell:
    """One cell with what stands beside its verdict. `cell` is None where nothing could be tested."""

    comparison: Comparison
    cell: Cell | None
    fraction: bool = True
    """whether the metric lies between 0 and 1, so that differences are points"""
    invalid: tuple[int, int] | None = None
    """responses without an extracted answer, in base and head; None where none lacks one"""


@dataclass(frozen=True, slots=True)
class ComparedTask:
    """One task's pairs, for whoever wants to read the answers. Empty where nothing pairs."""

    name: str
    base: TaskOutput
    head: TaskOutput
    pairs: Mapping[str, Pairs] = field(default_factory=dict)
    questions: int = 0
    text_diverged: int = 0
    """questions whose responses differ in text"""

    @property
    def response_name(self) -> str:
        """What a response is: of a task that generates nothing, its log-probabilities."""
        generated = self.base.results.config.get("output_type", "generate_until") == "generate_until"
        return "the answers' texts" if generated else "the log-probabilities"


@dataclass(frozen=True, slots=True)
class Compared:
    """Everything that was found."""

    base: LmEvalOutput
    head: LmEvalOutput
    wanted: Wanted
    cells: tuple[TestedCell, ...]
    tasks: tuple[ComparedTask, ...]
    problems: tuple[Problem, ...]

    @property
    def verdict(self) -> Verdict:
        """The worst cell; a blocking problem is never better than not comparable."""
        found = {each.comparison.verdict for each in self.cells}
        if not found or any(problem.blocks for problem in self.problems):
            found.add(Verdict.NOT_COMPARABLE)
        return next(verdict for verdict in VERDICTS_WORST_FIRST if verdict in found)

    @property
    def report(self) -> CompareReport:
        comparisons = [each.comparison for each in self.cells]
        return CompareReport(verdict=self.verdict, comparisons=comparisons, problems=list(self.problems))


@dataclass(slots=True)
class _Found:
    cells: list[tuple[CellName, Cell | None, bool, tuple[int, int] | None]] = field(default_factory=list)
    tasks: list[ComparedTask] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)

    def blocked(self, name: CellName) -> bool:
        return any(
            problem.blocks
            and problem.task in (None, name.task)
            and problem.metric in (None, name.metric)
            and problem.filter in (None, name.filter)
            for problem in self.problems
        )


def compare(base: LmEvalOutput, head: LmEvalOutput, wanted: Wanted) -> Compared:
    """Compare two evaluations. Reads both samples files once.

    Raises:
        BadOutputError: if a file cannot be read, or nothing is what `wanted` selects.
    """
    found = _Found(problems=[*_of_evaluations(base, head)])
    for name in _selected(
        "task", [*base.tasks, *(each for each in head.tasks if each not in base.tasks)], wanted.tasks
    ):
        if name in base.tasks and name in head.tasks:
            _task(found, name, (base.tasks[name], head.tasks[name]), wanted)
            continue
        arm = Arm.HEAD if name in base.tasks else Arm.BASE
        message = f"{name}: {arm} has no such task; evaluate it there too, or choose with --task"
        found.problems.append(Problem(code="task_missing", blocks=True, arm=arm, task=name, message=message))
    found.problems += _stale(found.tasks, base, head)
    return Compared(base, head, wanted, tuple(_tested(found)), tuple(found.tasks), tuple(found.problems))


def _of_evaluations(base: LmEvalOutput, head: LmEvalOutput) -> Iterator[Problem]:
    if base.results.path.resolve() == head.results.path.resolve():
        yield Problem(code="same_file", blocks=False, message="base and head are one and the same evaluation")
    for arm, output in ((Arm.BASE, base), (Arm.HEAD, head)):
        if output.passed_over:
            message = f"{arm}: {len(output.passed_over)} older evaluations in the folder; {output.results.path.name!r} was taken"
            yield Problem(code="newest_taken", blocks=False, arm=arm, message=message)
        if cache := output.results.config.get("use_cache"):
            message = (
                f"{arm}: --use_cache {cache}: its answers may be another model's, for the cache's key names no model"
            )
            yield Problem(code="use_cache", blocks=False, arm=arm, message=message)
    yield from evaluation_settings(base, head)


def _selected(what: str, names: Iterable[str], chosen: frozenset[str]) -> list[str]:
    there = list(dict.fromkeys(names))
    if unknown := sorted(chosen - set(there)):
        listed = ", ".join(there) or "none"
        raise BadOutputError(f"unknown_{what}", f"no {what} {unknown[0]!r} in these evaluations; there are: {listed}")
    return [name for name in there if not chosen or name in chosen]


def _task(found: _Found, name: str, arms: tuple[TaskOutput, TaskOutput], wanted: Wanted) -> None:
    columns = read_columns(arms[0]), read_columns(arms[1])
    for arm, output, each in zip(Arm, arms, columns, strict=True):
        found.problems += task_problems(arm, output, each)
    found.problems += task_settings(arms[0].results, arms[1].results)
    filters = _selected("filter", _filters(arms, columns), wanted.filters)
    pairs = {}
    for kept in filters:
        if kept in columns[0].filters and kept in columns[1].filters:
            pairs[kept] = pair(columns[0].filters[kept], columns[1].filters[kept])
            found.problems += unpaired(name, kept, pairs[kept])
        elif all(output.samples_path is not None for output in arms):
            arm = Arm.HEAD if kept in columns[0].filters else Arm.BASE
            message = f"{name}: {arm} has no filter {kept!r}; was it renamed? Choose with --filter"
            about = {"task": name, "filter": kept}
            found.problems.append(Problem(code="filter_missing", blocks=True, arm=arm, message=message, **about))
    found.tasks.append(_compared_task(name, arms, pairs))
    found.problems += format_remarks(name, pairs)
    metrics = _selected("metric", _metrics(arms, columns), wanted.metrics)
    paired = [metric for metric in metrics if metric not in columns[0].unscored | columns[1].unscored]
    for metric in paired:
        for kept in filters:
            _cell(found, CellName(name, metric, kept), pairs.get(kept), (arms[0].results, wanted))
    if not paired or not filters:
        message = f"{name}: no metric of it can be paired question by question; leave it out with --task"
        found.problems.append(Problem(code="nothing_to_compare", blocks=True, task=name, message=message))


def _metrics(arms: tuple[TaskOutput, TaskOutput], columns: tuple[TaskColumns, TaskColumns]) -> Iterator[str]:
    for output, each in zip(arms, columns, strict=True):
        yield from output.results.metrics
        for filtered in each.filters.values():
            yield from filtered.values


def _filters(arms: tuple[TaskOutput, TaskOutput], columns: tuple[TaskColumns, TaskColumns]) -> Iterator[str]:
    for output, each in zip(arms, columns, strict=True):
        yield from output.results.filters
        yield from each.filters


def _compared_task(name: str, arms: tuple[TaskOutput, TaskOutput], pairs: Mapping[str, Pairs]) -> ComparedTask:
    if not pairs:
        return ComparedTask(name, *arms)
    one, other = next(iter(pairs.values())).column("texts")
    return ComparedTask(name, *arms, pairs, questions=one.size, text_diverged=int((one != other).sum()))


def _cell(found: _Found, name: CellName, pairs: Pairs | None, context: tuple[TaskResults, Wanted]) -> None:
    """Test one cell, or keep its place empty where a problem blocks it."""
    metric = str(name.metric)
    there = pairs is not None and metric in pairs.base.values and metric in pairs.head.values
    if pairs is None or not there or not pairs.doc_ids.size or found.blocked(name):
        if not found.blocked(name):
            message = (
                f"{name.task}, {metric}, {name.filter}: not scored in both evaluations, so there is nothing to compare"
            )
            about = {"task": name.task, "metric": metric, "filter": name.filter}
            found.problems.append(Problem(code="nothing_shared", blocks=True, message=message, **about))
        found.cells.append((name, None, True, None))
        return
    base, head = pairs.scores(metric)
    results, wanted = context
    direction = results.higher_is_better.get(metric)
    cell, fraction = _made(name, (base, head), wanted), _is_share(base, head)
    found.problems += _remarks(name, cell, direction)
    before, after = pairs.column("invalid")
    found.cells.append(
        (name, replace(cell, higher_is_better=direction), fraction, (int(before.sum()), int(after.sum())))
    )


def _made(name: CellName, scores: tuple[NDArray[np.float64], NDArray[np.float64]], wanted: Wanted) -> Cell:
    base, head = scores
    metric = str(name.metric)
    if all(((each == 0) | (each == 1)).all() for each in scores):
        return binary_cell(name, base == 1, head == 1, wanted.metric_margins.get(metric, wanted.margin))
    unit = _is_share(base, head)
    margin = wanted.metric_margins.get(metric, wanted.margin if unit else None)
    return mean_cell(name, base, head, margin, span=1.0 if unit else float(np.ptp(np.concatenate(scores))))


def _floor_and_ceiling(name: CellName, cell: Cell, direction: bool | None) -> Iterator[Problem]:
    """Two broken evaluations agree perfectly: where no answer is right in either, no drop can be seen."""
    if cell.lost is None or cell.base != cell.head or cell.base not in (0, 1):
        return
    about = {"task": name.task, "metric": str(name.metric), "filter": name.filter}
    where = f"{name.task}, {name.metric}, {name.filter}"
    if cell.base == (0 if direction is not False else 1):
        message = (
            f"{where}: no answer is right in either evaluation, so no drop could be seen; look at some answers, or choose "
            "others with --filter, --metric or --task"
        )
        yield Problem(code="all_wrong", blocks=True, message=message, **about)
    else:
        message = f"{where}: every answer is right in both evaluations, so no gain could be seen"
        yield Problem(code="all_right", blocks=False, message=message, **about)


def _is_share(base: NDArray[np.float64], head: NDArray[np.float64]) -> bool:
    return bool(min(base.min(), head.min()) >= 0 and max(base.max(), head.max()) <= 1)


def _remarks(name: CellName, cell: Cell, direction: bool | None) -> Iterator[Problem]:
    about = {"task": name.task, "metric": str(name.metric), "filter": name.filter}
    where = f"{name.task}, {name.metric}, {name.filter}"
    if cell.lost is None:
        message = (
            f"{where}: not a 0/1 metric, so tested by a paired permutation of the signs, with a bootstrap interval"
        )
        yield Problem(code="permutation", blocks=False, message=message, **about)
    if cell.margin is None:
        message = (
            f"{where}: not a share, so the margin says nothing of it and it cannot be equivalent; give --metric-margin"
        )
        yield Problem(code="no_margin", blocks=False, message=message, **about)
    yield from _floor_and_ceiling(name, cell, direction)
    if direction is None:
        message = f"{where}: lm-eval does not say whether more is better, so any significant move counts as regressed"
        yield Problem(code="no_direction", blocks=False, message=message, **about)


def _stale(tasks: Iterable[ComparedTask], base: LmEvalOutput, head: LmEvalOutput) -> Iterator[Problem]:
    """Two models that say the same in every word, out of a cache that cannot tell them apart."""
    caches = [output.results.config.get("use_cache") for output in (base, head)]
    if not any(caches) or same_model(base, head):
        return
    for task in tasks:
        if task.questions and not task.text_diverged:
            message = f"{task.name}: different models answered alike in everything, with --use_cache: answers of another model"
            yield Problem(code="stale_answers", blocks=True, task=task.name, message=f"{message}; evaluate without it")


def _tested(found: _Found) -> Iterator[TestedCell]:
    """All cells adjusted together; a blocked one keeps its place as a p of 1 (design 6.3)."""
    sound = [None if cell is None or found.blocked(name) else cell for name, cell, _, _ in found.cells]
    corrected = iter(adjusted([cell.p_value for cell in sound if cell is not None], len(found.cells)))
    for (name, _, fraction, invalid), cell in zip(found.cells, sound, strict=True):
        if cell is None:
            yield TestedCell(unmeasured(name), None)
        else:
            done = comparison(cell, next(corrected), len(found.cells))
            yield TestedCell(done, cell, fraction, invalid if invalid and any(invalid) else None)
