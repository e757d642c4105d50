"""One evaluation on disk: which results file and which samples files belong together."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from driftline.lmeval import samples_file
from driftline.lmeval.refusal import BadOutputError
from driftline.lmeval.results_file import Results, TaskResults, read_results
from driftline.lmeval.sample import Sample

STAMP: Final = r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d(?:\.\d+)?"
"""lm-eval's name of a moment, the same for a results file and its samples: ISO time with - for :"""

RESULTS: Final = re.compile(rf"(?P<stem>.+)_(?P<stamp>{STAMP})\.json")
SAMPLES: Final = re.compile(rf"samples_(?P<task>.+)_(?P<stamp>{STAMP})\.jsonl(?:\.gz)?")
HOW: Final = "evaluate with `lm_eval … --log_samples --output_path FOLDER`"


@dataclass(frozen=True, slots=True)
class TaskOutput:
    """One task: what its results say, and its samples if they were logged."""

    results: TaskResults
    samples_path: Path | None

    def samples(self) -> Iterator[Sample]:
        """A new stream of all samples in the file's order: filter by filter; nothing where none were logged.

        Raises:
            BadOutputError: while it is read, naming the line.
        """
        return iter(()) if self.samples_path is None else samples_file.samples(self.samples_path)

    def samples_at(self, offsets: list[int]) -> Iterator[Sample]:
        """The samples whose `offset` is named, in ascending order."""
        return iter(()) if self.samples_path is None else samples_file.samples_at(self.samples_path, offsets)


@dataclass(frozen=True, slots=True)
class LmEvalOutput:
    """One evaluation: its results file, and its tasks by name in lm-eval's order."""

    results: Results
    tasks: Mapping[str, TaskOutput]
    passed_over: tuple[Path, ...] = ()
    """older results files in the same folder"""


def open_output(path: Path) -> LmEvalOutput:
    """The evaluation at `path`: lm-eval's output folder, the model's folder in it, a results file or a samples file.

    Of several evaluations of one model in a folder, the newest. Samples are not read yet.

    Raises:
        BadOutputError: no_such_path, no_results, several_models, or what `read_results` raises.
    """
    if path.is_file():
        return _with_samples(_results_beside(path), ())
    if not path.is_dir():
        raise BadOutputError("no_such_path", f"{path}: no such file or folder; name lm-eval's --output_path")
    found = sorted((each for each in path.rglob("*.json") if RESULTS.fullmatch(each.name)), key=_moment)
    folders = sorted({each.parent for each in found})
    if len(folders) > 1:
        names = ", ".join(str(each) for each in folders[:5])
        raise BadOutputError("several_models", f"{path}: holds evaluations of several models; name one of {names}")
    if not found:
        raise _nothing(path)
    return _with_samples(found[-1], tuple(found[:-1]))


def _nothing(path: Path) -> BadOutputError:
    if any(SAMPLES.fullmatch(each.name) for each in path.rglob("samples_*")):
        message = f"{path}: samples, but no results_<time>.json; lm-eval ends with 0 even if it could not save it"
    else:
        message = f"{path}: no results_<time>.json; lm-eval ends with 0 even if it could not save. To make one, {HOW}"
    return BadOutputError("no_results", message)


def _results_beside(path: Path) -> Path:
    """The results file itself, or that of the same moment beside a samples file."""
    samples = SAMPLES.fullmatch(path.name)
    if samples is None:
        return path
    for each in sorted(path.parent.glob("*.json")):
        named = RESULTS.fullmatch(each.name)
        if named is not None and named["stamp"] == samples["stamp"]:
            return each
    wanted = f"results_{samples['stamp']}.json"
    raise BadOutputError("no_results", f"{path}: no {wanted} beside it, without which it cannot be checked")


def _with_samples(path: Path, passed_over: tuple[Path, ...]) -> LmEvalOutput:
    results = read_results(path)
    named = RESULTS.fullmatch(path.name)
    beside: dict[str, Path] = {}
    for each in sorted(path.parent.glob("samples_*.jsonl*")):
        found = SAMPLES.fullmatch(each.name)
        if found is not None and (named is None or found["stamp"] == named["stamp"]):
            if found["task"] in beside:
                both = f"{beside[found['task']].name} and {each.name}"
                raise BadOutputError("samples_twice", f"{path.parent}: {both} are of one evaluation; remove one")
            beside[found["task"]] = each
    tasks = {name: TaskOutput(task, beside.get(name)) for name, task in results.tasks.items()}
    return LmEvalOutput(results=results, tasks=tasks, passed_over=passed_over)


def _moment(path: Path) -> str:
    named = RESULTS.fullmatch(path.name)
    return named["stamp"] if named else ""
