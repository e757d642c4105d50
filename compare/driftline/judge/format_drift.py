"""Format drift: the form of the answers moved, not what they say. It is told beside a verdict and decides none."""

from collections.abc import Sequence
from typing import Final

from driftline.contracts.beside import FormatDrift, InvalidAnswers
from driftline.judge.answers import FILTERS, Answers
from driftline.scoring import INVALID
from driftline.statistics.holm import adjusted
from driftline.statistics.mcnemar import exact_p

FORMAT_ALPHA: Final = 0.01
"""For all of a lane's format tests together, after Holm. Smaller than a verdict's: it is a remark, and must be worth one."""

STRICT, FLEXIBLE = "strict-match", "flexible-extract"


def format_drift(base: Answers, head: Answers) -> FormatDrift | None:
    """Over the questions that both arms answered; None if there are none.

    Three paired tests, each exact McNemar: answers whose correctness moved under strict-match alone while
    flexible-extract found them right in both arms, and for each filter the answers from which nothing was extracted.
    """
    shared = base.by_doc.keys() & head.by_doc.keys()
    if not shared:
        return None
    substance = base.right(FLEXIBLE) & head.right(FLEXIBLE) & shared
    before, after = base.right(STRICT) & substance, head.right(STRICT) & substance
    invalid = [_invalid(name, base, head) for name in FILTERS]
    return drift_of(len(shared), (len(before - after), len(after - before)), invalid)


def drift_of(questions: int, strict_only: tuple[int, int], invalid: Sequence[InvalidAnswers]) -> FormatDrift:
    """The tests on counts: answers lost and gained under strict-match alone, and each filter's empty ones."""
    lost, gained = strict_only
    p_value = exact_p(lost, gained)
    return FormatDrift(
        questions=questions, strict_only_lost=lost, strict_only_gained=gained, strict_only_p=p_value,
        invalid=list(invalid), drifted=min(_adjusted(p_value, invalid)) <= FORMAT_ALPHA,
    )  # fmt: skip


def _adjusted(strict_only_p: float, invalid: Sequence[InvalidAnswers]) -> list[float]:
    return adjusted([strict_only_p, *(each.p_value for each in invalid)], 1 + len(invalid))


def _invalid(name: str, base: Answers, head: Answers) -> InvalidAnswers:
    shared = base.by_doc.keys() & head.by_doc.keys()
    before, after = (
        {doc_id for doc_id in shared if arm.scored[doc_id][name].extracted == INVALID} for arm in (base, head)
    )
    appeared, vanished = len(after - before), len(before - after)
    return invalid_answers(name, (len(before), len(after)), appeared=appeared, vanished=vanished)


def invalid_answers(name: str, counts: tuple[int, int], *, appeared: int, vanished: int) -> InvalidAnswers:
    """One filter's responses without an answer, (base, head), with their paired test."""
    base, head = counts
    return InvalidAnswers(
        filter=name, base=base, head=head, appeared=appeared, vanished=vanished, p_value=exact_p(vanished, appeared)
    )


def format_sentences(seen: FormatDrift) -> list[str]:
    """What moved, in words; nothing of a lane whose answers kept their form."""
    strict_only, *invalid = _adjusted(seen.strict_only_p, seen.invalid)
    told = []
    if strict_only <= FORMAT_ALPHA:
        told.append(
            f"format drift: of the answers that {FLEXIBLE} finds right in both arms, {seen.strict_only_lost} are no longer "
            f"right under {STRICT} and {seen.strict_only_gained} newly are: the form moved, not what is said"
        )
    told += [
        f"format drift: {each.filter} finds no answer in {each.head} of {seen.questions} responses, {each.base} on base "
        f"(p = {p_adjusted:.2g} after Holm)"
        for each, p_adjusted in zip(seen.invalid, invalid, strict=True)
        if p_adjusted <= FORMAT_ALPHA
    ]
    return told
