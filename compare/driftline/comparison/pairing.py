"""The questions of two evaluations brought together: by number, and only if their hashes say that they are the same."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from driftline.contracts.compare import Problem
from driftline.lmeval.columns import FilterColumns

PARTS: Final = (("docs", "text"), ("prompts", "prompt"), ("targets", "gold answer"))


@dataclass(frozen=True, slots=True)
class Pairs:
    """One filter's questions that both arms have. Arrays of shape (questions,), in the order of question numbers."""

    base: FilterColumns
    head: FilterColumns
    doc_ids: NDArray[np.int64]
    base_rows: NDArray[np.int64]
    head_rows: NDArray[np.int64]

    @property
    def metrics(self) -> list[str]:
        """Those that both arms have scores of."""
        return sorted(self.base.values.keys() & self.head.values.keys())

    def column(self, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """One integer column of both arms."""
        one, other = (np.asarray(getattr(arm, name)) for arm in (self.base, self.head))
        return one[self.base_rows], other[self.head_rows]

    def scores(self, metric: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Both arms' scores under one metric."""
        return (
            np.asarray(self.base.values[metric])[self.base_rows],
            np.asarray(self.head.values[metric])[self.head_rows],
        )


def pair(base: FilterColumns, head: FilterColumns) -> Pairs:
    """The shared questions; of one that comes twice, the first."""
    ours, theirs = np.asarray(base.doc_ids), np.asarray(head.doc_ids)
    shared, base_rows, head_rows = np.intersect1d(ours, theirs, return_indices=True)
    return Pairs(base, head, shared, base_rows, head_rows)


def unpaired(task: str, name: str, pairs: Pairs) -> Iterator[Problem]:
    """Why the questions of the two arms are not the same ones."""
    for other, rows, arm in ((pairs.base, pairs.base_rows, "head"), (pairs.head, pairs.head_rows, "base")):
        if lacking := np.unique(np.asarray(other.doc_ids)).size - rows.size:
            message = (
                f"{task}, {name}: {arm} lacks {lacking} questions of the other arm; evaluate both on the same ones"
            )
            yield Problem(code="questions_differ", blocks=True, task=task, filter=name, message=message)
    for column, what in PARTS:
        one, other_one = pairs.column(column)
        if (differing := one != other_one).any():
            message = (
                f"{task}, {name}: {what} of {int(differing.sum())} questions, first of {pairs.doc_ids[differing][0]}, is "
                "another in head; the same name does not make it the same task, data or shots"
            )
            yield Problem(
                code=f"{what.replace(' ', '_')}_differs", blocks=True, task=task, filter=name, message=message
            )
