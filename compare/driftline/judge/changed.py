"""The questions whose answer differs between the arms, for people who want to see what a number means."""

from collections.abc import Iterator

import numpy as np

from driftline.contracts.report import ChangedSample
from driftline.evidence import EvaluationEvidence, LaneEvidence, RunEvidence
from driftline.judge.answers import Answers, paired_logprobs
from driftline.judge.first_difference import first_different_word


def changed_samples(evidence: RunEvidence) -> Iterator[ChangedSample]:
    """Lane by lane, in the fixed order of questions: those whose text or correctness differs."""
    for lane in evidence.lanes:
        yield from changed_in_lane(lane)


def changed_in_lane(lane: LaneEvidence) -> Iterator[ChangedSample]:
    """One lane's changed questions; none while an arm is missing."""
    if not isinstance(lane.base, EvaluationEvidence) or not isinstance(lane.head, EvaluationEvidence):
        return
    yield from changed_between(lane.lane.name, lane.base, lane.head)


def changed_between(lane: str, one_arm: EvaluationEvidence, other_arm: EvaluationEvidence) -> Iterator[ChangedSample]:
    """The changed ones among the questions of two evaluations, whole or in part: base's, then head's."""
    base, head = Answers(one_arm), Answers(other_arm)
    for doc_id in changed_questions(base, head):
        one, other = base.by_doc[doc_id], head.by_doc[doc_id]
        tokens = paired_logprobs(one, other)
        yield ChangedSample(
            lane=lane, doc_id=doc_id, question=one.question, target=one.target, base_response=one.response,
            head_response=other.response, base_right=base.right_by_filter(doc_id), head_right=head.right_by_filter(doc_id),
            first_different_word=first_different_word(one.response, other.response),
            logprob_move=float(np.abs(tokens[1] - tokens[0]).max()) if tokens is not None else None,
        )  # fmt: skip


def changed_questions(base: Answers, head: Answers) -> list[int]:
    """Questions that both arms answered, with another text or another correctness, in the fixed order."""
    shared = base.by_doc.keys() & head.by_doc.keys()
    return [
        doc_id
        for doc_id in sorted(shared, key=lambda each: (base.by_doc[each].rank, each))
        if base.by_doc[doc_id].response != head.by_doc[doc_id].response
        or base.right_by_filter(doc_id) != head.right_by_filter(doc_id)
    ]
