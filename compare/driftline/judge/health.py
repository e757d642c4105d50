"""Health before accuracy: what the model did not say is counted apart from what it said wrong (design 6.1)."""

from collections.abc import Iterable
from typing import Final

from driftline.contracts.report import ArmHealth
from driftline.contracts.words import Arm
from driftline.evidence import ArmFailure, EvaluationEvidence
from driftline.judge.answers import FILTERS, Answers
from driftline.scoring import INVALID

BUDGET: Final = 0.005
"""Share of questions that may be without a proper answer. Above it nothing is scored."""

MEAN_TOLERANCE: Final = 1e-9
"""lm-eval's mean and ours are the same sum of zeros and ones; only rounding in JSON may part them."""


def health(arm: Arm, evidence: EvaluationEvidence | ArmFailure) -> ArmHealth:
    """What one arm's evaluation lacks."""
    if isinstance(evidence, ArmFailure):
        return ArmHealth(
            arm=arm, questions=0, missing=0, duplicates=0, left_truncated=0, mean_mismatch=False, length_stops=0,
            invalid={}, attempts=evidence.attempts, failure=f"{evidence.reason}: {evidence.message}",
        )  # fmt: skip
    answers = Answers(evidence)
    return ArmHealth(
        arm=arm,
        questions=len(evidence.expected_doc_ids),
        missing=len(set(evidence.expected_doc_ids) - answers.by_doc.keys()),
        duplicates=len(evidence.samples) - len(answers.by_doc),
        left_truncated=_known_sum(sample.left_truncated for sample in answers.by_doc.values()),
        mean_mismatch=_mean_differs(answers),
        length_stops=_known_sum(
            None if sample.finish_reason is None else sample.finish_reason == "length"
            for sample in answers.by_doc.values()
        ),
        invalid={
            name: sum(scored[name].extracted == INVALID for scored in answers.scored.values()) for name in FILTERS
        },
        attempts=evidence.attempts,
        reused_from=evidence.reused_from,
        imported_from=evidence.vouched.import_id if evidence.vouched else None,
    )


def over_budget(seen: ArmHealth) -> str | None:
    """Why an arm is not fit to be scored, or None."""
    if seen.mean_mismatch:
        return f"{seen.arm}: the score recomputed from the answers differs from what lm-eval reported"
    cut = seen.left_truncated or 0  # what is not known of an import was vouched for
    unanswered = seen.missing + seen.duplicates + cut
    if unanswered > BUDGET * seen.questions:
        return (
            f"{seen.arm}: {seen.missing} answers missing, {seen.duplicates} doubled, {cut} prompts cut, "
            f"more than {BUDGET:.1%} of {seen.questions} questions"
        )
    return None


def _known_sum(values: Iterable[bool | None]) -> int | None:
    """How many are true; None if any is not known."""
    listed = list(values)
    return None if None in listed else sum(map(bool, listed))


def _mean_differs(answers: Answers) -> bool:
    """Whether lm-eval's own scores say anything else than ours, in the mean or for any question.

    lm-eval's mean counts the questions of which we lack the answer; then only the others are compared, one by one.
    """
    scores = answers.evidence.scores
    if scores is None:
        return False
    complete = answers.by_doc.keys() >= set(answers.evidence.expected_doc_ids)
    for name in FILTERS:
        if answers.by_doc.keys() & set(scores.right.get(name, ())) != answers.right(name):
            return True
        told, ours = scores.metrics.get(f"exact_match,{name}"), answers.share_right(name)
        if told is None or ours is None or (complete and abs(told - ours) > MEAN_TOLERANCE):
            return True
    return False
