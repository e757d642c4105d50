"""One evaluation as the statistics need it: what was right per filter, what was extracted, and the log-probabilities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from driftline.scoring import FILTERS, Scored, score

if TYPE_CHECKING:  # a run's contracts, for which `driftline compare` would wait a tenth of its time
    from driftline.evidence import EvaluationEvidence, ForcedEvidence, SampleEvidence

FLOAT = np.dtype("<f4")

FLOOR_NATS = -100.0
"""Stands for a log-probability that is not finite. A kernel that gives NaN is worse than any finite loss, so its question
must count as lost and not drop out; float32 gives no finite log-probability as low."""


@dataclass(frozen=True)
class Answers:
    """An evaluation's samples by question; of a question answered twice, the first answer."""

    evidence: EvaluationEvidence

    @cached_property
    def by_doc(self) -> dict[int, SampleEvidence]:
        found: dict[int, SampleEvidence] = {}
        for sample in self.evidence.samples:
            found.setdefault(sample.doc_id, sample)
        return found

    @cached_property
    def forced(self) -> dict[int, SampleEvidence | ForcedEvidence]:
        """What holds each question's log-probabilities: its sample, or the pass alone where no answer was asked."""
        return {each.doc_id: each for each in self.evidence.forced_only} | self.by_doc

    @cached_property
    def scored(self) -> dict[int, dict[str, Scored]]:
        return {doc_id: score(sample.response, sample.target) for doc_id, sample in self.by_doc.items()}

    def right_by_filter(self, doc_id: int) -> dict[str, bool]:
        return {name: scored.right for name, scored in self.scored[doc_id].items()}

    def right(self, filter_name: str) -> frozenset[int]:
        return frozenset(doc_id for doc_id, scored in self.scored.items() if scored[filter_name].right)

    def share_right(self, filter_name: str) -> float | None:
        return len(self.right(filter_name)) / len(self.scored) if self.scored else None


def logprobs(sample: SampleEvidence | ForcedEvidence | None) -> NDArray[np.float64] | None:
    """A sample's teacher-forced log-probabilities in nats (shape (tokens,), all finite); None if it has none.

    What is not finite counts as the floor.
    """
    if sample is None or not sample.logprobs or len(sample.logprobs) % FLOAT.itemsize:
        return None
    values = np.frombuffer(sample.logprobs, FLOAT).astype(np.float64)
    return np.where(np.isfinite(values), values, FLOOR_NATS)


def paired_logprobs(
    base: SampleEvidence | ForcedEvidence | None, head: SampleEvidence | ForcedEvidence | None
) -> tuple[NDArray[np.float64], NDArray[np.float64]] | None:
    """Both arms' log-probabilities of one question, token by token; None unless both have equally many and at least one."""
    one, other = logprobs(base), logprobs(head)
    return (one, other) if one is not None and other is not None and one.size == other.size > 0 else None


__all__ = ["FILTERS", "Answers", "logprobs", "paired_logprobs"]
