"""Whether one task's results and samples belong together and are whole: every fault is a named value.

A fault that `blocks` leaves nothing to compare; the others are remarks. What concerns two evaluations is in
driftline.comparison.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from driftline.contracts.compare import Problem
from driftline.contracts.words import Arm
from driftline.lmeval.columns import FilterColumns, TaskColumns
from driftline.lmeval.output import TaskOutput
from driftline.lmeval.results_file import TaskResults

TOLERANCE: Final = 1e-9
"""Of a recomputed mean or standard error, relative. lm-eval and we add the same numbers; only their order may differ."""

KNOWN_MEANS: Final = frozenset({"acc", "acc_norm", "acc_bytes", "acc_mutual_info", "exact_match"})
"""Metrics whose score is the mean where the task does not say so. Source: lm-eval 0.4.13, api/metrics.py."""


def task_problems(arm: Arm, task: TaskOutput, columns: TaskColumns) -> list[Problem]:
    """What is wrong with one task of one evaluation, worst first."""
    results = task.results
    if task.samples_path is None:
        message = (
            f"{arm}: no samples_{results.name}_<time>.jsonl beside the results: evaluate with --log_samples; if that was "
            "given, lm-eval could not save it and ended with 0 all the same (see its log)"
        )
        return [Problem(code="no_samples", blocks=True, message=message, arm=arm, task=results.name)]
    found = [*_whole(results, columns), *_true(results, columns), *_remarks(results, columns)]
    made = [
        Problem(
            code=code, blocks=blocks, arm=arm, task=results.name, message=f"{arm}, {results.name}: {message}", **about
        )
        for code, blocks, message, about in found
    ]
    return sorted(made, key=lambda each: not each.blocks)


_Found = tuple[str, bool, str, dict[str, str]]


def _whole(results: TaskResults, columns: TaskColumns) -> Iterator[_Found]:
    """Every question once a filter, under every filter, with one text each."""
    expected = results.effective
    lines = sum(len(each.doc_ids) for each in columns.filters.values())
    filters = sorted(set(results.filters) | columns.filters.keys())
    if expected is not None and lines != expected * len(filters):
        yield (
            "line_count", True,
            f"{lines} lines for {expected} questions × {len(filters)} filters; the samples were cut or mixed, evaluate again",
            {},
        )  # fmt: skip
    for name in filters:
        if name not in columns.filters:
            yield (
                "filter_missing",
                True,
                f"results name the filter {name!r}, samples have no line of it",
                {"filter": name},
            )
    for name, each in columns.filters.items():
        yield from _each_once(name, each, expected)
    yield from _one_question_a_doc(columns)


def _each_once(name: str, columns: FilterColumns, expected: int | None) -> Iterator[_Found]:
    ids, counts = np.unique(np.asarray(columns.doc_ids), return_counts=True)
    if (counts > 1).any():
        doc_id, times = ids[counts > 1][0], counts[counts > 1][0]
        message = (
            f"question {doc_id} comes {times} times under {name!r}; {(counts > 1).sum()} questions come more than once"
        )
        yield "duplicate_doc", True, message, {"filter": name}
    elif expected is not None and len(ids) < expected:
        missing = np.setdiff1d(np.arange(expected), ids)
        first = f", the first is {missing[0]}" if missing.size else ""
        yield (
            "missing_doc",
            True,
            f"{expected - len(ids)} questions are missing under {name!r}{first}",
            {"filter": name},
        )


def _one_question_a_doc(columns: TaskColumns) -> Iterator[_Found]:
    """A question has one text, prompt and gold answer, whatever the filter, and all filters have the same questions."""
    (first, known), *others = [(name, _by_doc(each)) for name, each in columns.filters.items()] or [("", _by_doc(None))]
    for name, seen in others:
        if not np.array_equal(seen[0], known[0]):
            some = np.setxor1d(seen[0], known[0])[:3].tolist()
            yield (
                "missing_doc",
                True,
                f"{first!r} and {name!r} have not the same questions, e.g. {some}",
                {"filter": name},
            )
            continue
        mixed = seen[0][(seen != known).any(axis=0)]
        if mixed.size:
            message = f"question {mixed[0]} is another one under {name!r} than under {first!r} ({mixed.size} are)"
            yield "mixed_hashes", True, f"{message}; files of several evaluations were joined", {"filter": name}


def _by_doc(columns: FilterColumns | None) -> NDArray[np.uint64]:
    """Shape (4, lines): doc ids in order, and beside each its three hashes."""
    if columns is None:
        return np.zeros((4, 0), dtype=np.uint64)
    ids = np.asarray(columns.doc_ids)
    order = np.argsort(ids, kind="stable")
    return np.stack(
        [np.asarray(each)[order].astype(np.uint64) for each in (ids, columns.docs, columns.prompts, columns.targets)]
    )


def _true(results: TaskResults, columns: TaskColumns) -> Iterator[_Found]:
    """Scores, hashes and settings are what the files say they are."""
    for name, each in columns.filters.items():
        for metric, values in each.values.items():
            if times := int(np.isnan(np.asarray(values)).sum()):
                message = f"{metric} under {name!r} is NaN, infinite or not given for {times} questions"
                yield "not_finite", True, message, {"metric": metric, "filter": name}
    if columns.wrong_hashes:
        message = f"prompt or gold answer of question {columns.wrong_hashes[0]} is not what its hash says; the file was edited"
        yield "wrong_hash", True, message, {}
    if results.task_hash is not None and columns.filters and results.task_hash != columns.task_hash:
        yield "task_hash", True, "the samples are not those of which the results hold the hash; evaluate again", {}
    if columns.stale_prompts:
        message = f"the prompt of question {columns.stale_prompts[0]} does not ask that question: a stale request cache"
        yield "stale_prompts", True, f"{message}; evaluate again without --cache_requests", {}
    for setting, (said, asked) in columns.stale_arguments.items():
        message = f"the task says {setting} = {said!r}, the engine was asked {asked!r}: a stale request cache"
        yield "stale_arguments", True, f"{message}; evaluate again without --cache_requests", {}
    for metric, name in results.values:
        if name in columns.filters and metric not in columns.filters[name].values and metric not in columns.unscored:
            message = f"the results report {metric} under {name!r}, no sample has it"
            yield "not_sampled", True, message, {"metric": metric, "filter": name}
    for name, each in columns.filters.items():
        for metric, values in each.values.items():
            yield from _recomputed(results, (metric, name), np.asarray(values))


def _recomputed(results: TaskResults, key: tuple[str, str], values: NDArray[np.float64]) -> Iterator[_Found]:
    """Mean and standard error as reported, where the score is a mean."""
    about = {"metric": key[0], "filter": key[1]}
    reported, stderr = results.values.get(key), results.stderrs.get(key)
    if np.isnan(values).any():
        return
    if reported is None:
        yield "not_reported", True, f"the samples score {key[0]} under {key[1]!r}, the results do not report it", about
        return
    aggregation = _aggregation(results.config, key[0])
    mean, agrees = float(values.mean()), _agrees(float(values.mean()), reported)
    if aggregation != "mean" and not agrees:
        message = f"{key[0]} is not the mean over questions, so the reported {reported:.6g} could not be recomputed"
        yield "not_recomputed", False, message, about
        return
    if not agrees:
        message = f"{key[0]} under {key[1]!r} is reported as {reported:.6g}, its samples give {mean:.6g}"
        yield "mean_mismatch", True, f"{message}; results and samples do not belong together", about
        return
    if aggregation == "mean" and stderr is not None and math.isfinite(stderr) and values.size > 1:
        ours = float(values.std(ddof=1)) / math.sqrt(values.size)
        if not _agrees(ours, stderr):
            message = f"the standard error of {key[0]} under {key[1]!r} is reported as {stderr:.6g}, its samples give {ours:.6g}"
            yield "stderr_mismatch", True, message, about


def _agrees(ours: float, theirs: float) -> bool:
    return math.isclose(ours, theirs, rel_tol=TOLERANCE, abs_tol=TOLERANCE)


def _aggregation(config: Mapping[str, object], metric: str) -> str | None:
    """How the task makes one score of many; None if that is not known."""
    listed = config.get("metric_list")
    for each in listed if isinstance(listed, list) else ():
        if isinstance(each, dict) and each.get("metric") == metric and each.get("aggregation") is not None:
            return str(each["aggregation"])
    return "mean" if metric in KNOWN_MEANS else None


def _remarks(results: TaskResults, columns: TaskColumns) -> Iterator[_Found]:
    if results.effective is None:
        yield "no_count", False, "the results do not say how many questions were asked, so a cut cannot be seen", {}
    if results.effective is not None and results.total is not None and results.effective < results.total:
        message = f"--limit or --samples: {results.effective} of {results.total} questions were asked; the verdict is about those"
        yield "limited", False, message, {}
    if any(_unsorted(each) for each in columns.filters.values()):
        yield (
            "unsorted_samples", False,
            "question numbers are not in order: lm-eval mislabels them if --samples is not sorted; hashes pair them all the same",
            {},
        )  # fmt: skip
    for metric in sorted(columns.unscored):
        message = (
            f"{metric} has no score of a single question (lm-eval makes one of all together), so it cannot be paired"
        )
        yield "no_question_score", False, message, {"metric": metric}


def _unsorted(columns: FilterColumns) -> bool:
    """Whether the order is neither ascending nor that of several ranks, each of which has every w-th question."""
    ids = np.asarray(columns.doc_ids)
    if ids.size < 2 or (np.diff(ids) > 0).all():
        return False
    ranks = int(ids[1] - ids[0])
    if ids[0] != 0 or ranks < 2:
        return True
    expected = np.concatenate([np.arange(rank, ids.size, ranks) for rank in range(ranks)])
    return not np.array_equal(ids, expected)
