"""One evaluation as the statistics need it: what was right per filter, what was extracted, and the log-probabilities."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from driftline.evidence import EvaluationEvidence, SampleEvidence
from driftline.scoring import FILTERS, Scored, score

FLOAT = np.dtype("<f4")


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
    def scored(self) -> dict[int, dict[str, Scored]]:
        return {doc_id: score(sample.response, sample.target) for doc_id, sample in self.by_doc.items()}

    def right(self, filter_name: str) -> frozenset[int]:
        return frozenset(doc_id for doc_id, scored in self.scored.items() if scored[filter_name].right)

    def share_right(self, filter_name: str) -> float | None:
        return len(self.right(filter_name)) / len(self.scored) if self.scored else None


def logprobs(sample: SampleEvidence) -> NDArray[np.float64] | None:
    """A sample's teacher-forced log-probabilities in nats, or None if they are missing or cannot be read."""
    if not sample.logprobs or len(sample.logprobs) % FLOAT.itemsize:
        return None
    values = np.frombuffer(sample.logprobs, FLOAT).astype(np.float64)
    return values if np.isfinite(values).all() else None


__all__ = ["FILTERS", "Answers", "logprobs"]
