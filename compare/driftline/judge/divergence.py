"""How far two evaluations part below the score: tokens that moved, texts that differ."""

from typing import Final

import numpy as np

from driftline.contracts.report import Divergence
from driftline.judge.answers import Answers, paired_logprobs

MOVED_NATS: Final = 1e-3
"""A clean float32 run in other chunks moves no token by as much; a kernel bug moves most (docs/statistics.md)."""


def divergence(base: Answers, head: Answers) -> Divergence:
    """Over the questions that both arms answered."""
    shared = sorted(base.by_doc.keys() & head.by_doc.keys())
    largest, first = [], []
    for doc_id in shared:
        tokens = paired_logprobs(base.by_doc[doc_id], head.by_doc[doc_id])
        if tokens is None:
            continue
        moves = np.abs(tokens[1] - tokens[0])
        largest.append(float(moves.max()))
        if largest[-1] > MOVED_NATS:
            first.append(int(np.argmax(moves > MOVED_NATS)))
    return Divergence(
        questions=len(shared),
        moved_questions=len(first),
        largest_move=max(largest, default=0.0),
        text_diverged=sum(base.by_doc[doc_id].response != head.by_doc[doc_id].response for doc_id in shared),
        first_divergent_token=int(np.median(first)) if first else None,
    )
