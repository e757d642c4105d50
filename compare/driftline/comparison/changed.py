"""The answers that changed, read again from the samples files: only those that a report shows."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from driftline.comparison.compared import Compared, ComparedTask
from driftline.comparison.pairing import Pairs
from driftline.judge.first_difference import first_different_word
from driftline.lmeval import Sample


class Score(NamedTuple):
    """One metric under one filter, in both arms."""

    metric: str
    filter: str
    base: float
    head: float

    @property
    def word(self) -> str:
        """What became of a right or wrong answer; of any other score only whether it changed."""
        if {self.base, self.head} <= {0.0, 1.0}:
            names = {(1.0, 0.0): "lost", (0.0, 1.0): "gained", (1.0, 1.0): "right in both", (0.0, 0.0): "wrong in both"}
            return names[self.base, self.head]
        return "same" if self.base == self.head else f"{self.base:.4g} → {self.head:.4g}"


@dataclass(frozen=True, slots=True)
class ChangedAnswer:
    """One question whose response or score differs."""

    task: str
    doc_id: int
    prompt: str
    target: str
    base_response: str
    head_response: str
    scores: tuple[Score, ...]
    first_different_word: int | None


def changed_answers(compared: Compared, limit: int) -> Iterator[ChangedAnswer]:
    """At most `limit` a task: those with another score first, then those with another text, each by question number."""
    for task in compared.tasks:
        yield from _of_task(task, limit)


def _of_task(task: ComparedTask, limit: int) -> Iterator[ChangedAnswer]:
    if not task.pairs:
        return
    pairs = next(iter(task.pairs.values()))
    one, other = pairs.column("texts")
    moved = np.isin(pairs.doc_ids, np.concatenate([_moved(each) for each in task.pairs.values()]))
    chosen = np.concatenate([np.flatnonzero(moved), np.flatnonzero(~moved & (one != other))])[:limit]
    rows = [(pairs.base.offsets[pairs.base_rows[i]], pairs.head.offsets[pairs.head_rows[i]]) for i in chosen]
    bases = {each.doc_id: each for each in task.base.samples_at([row[0] for row in rows])}
    heads = {each.doc_id: each for each in task.head.samples_at([row[1] for row in rows])}
    for doc_id in pairs.doc_ids[chosen].tolist():
        yield _answer(task.name, (bases[doc_id], heads[doc_id]), _scores(task, doc_id))


def _moved(pairs: Pairs) -> NDArray[np.int64]:
    """The questions with another score under any metric of one filter."""
    moved = np.zeros(pairs.doc_ids.size, dtype=bool)
    for metric in pairs.metrics:
        base, head = pairs.scores(metric)
        moved |= base != head
    return pairs.doc_ids[moved]


def _scores(task: ComparedTask, doc_id: int) -> tuple[Score, ...]:
    """All scores of one question."""
    return tuple(
        Score(metric, name, pairs.base.values[metric][base_row], pairs.head.values[metric][head_row])
        for name, pairs in task.pairs.items()
        for place in np.flatnonzero(pairs.doc_ids == doc_id)
        for base_row, head_row in [(pairs.base_rows[place], pairs.head_rows[place])]
        for metric in pairs.metrics
    )


def _answer(task: str, arms: tuple[Sample, Sample], scores: tuple[Score, ...]) -> ChangedAnswer:
    base, head = arms
    return ChangedAnswer(
        task=task, doc_id=base.doc_id, prompt=base.prompt, target=base.target, base_response=base.response,
        head_response=head.response, scores=scores,
        first_different_word=first_different_word(base.response, head.response),
    )  # fmt: skip
