"""Whether two evaluations may be compared at all: their keys, and that they asked the same questions (design 6.2)."""

from driftline.contracts.report import KeyDifference
from driftline.evidence import EvaluationEvidence
from driftline.judge.answers import Answers

CAUSED_BY_COMMIT = ("served.",)
"""Recorded facts that a commit under test changes by itself: which module served each operator."""


def key_differences(base: EvaluationEvidence, head: EvaluationEvidence) -> list[KeyDifference]:
    """Every field in which the arms' keys differ, blocking ones first.

    A must_match field blocks; a recorded one blocks unless the commit itself can have caused it. Of an evaluation that
    an admin vouches for only what it states is compared.
    """
    if base.vouched is not None or head.vouched is not None:
        stated = base.must_match.keys() & head.must_match.keys()
        keys = ({name: arm.must_match[name] for name in stated} for arm in (base, head))
        found = _differences(*keys, recorded=False)
    else:
        found = _differences(base.must_match, head.must_match, recorded=False)
        found += _differences(base.recorded, head.recorded, recorded=True)
    return sorted(found, key=lambda each: (not each.blocks, each.field))


def _differences(base: dict[str, str], head: dict[str, str], *, recorded: bool) -> list[KeyDifference]:
    return [
        KeyDifference(
            field=name,
            base=base.get(name),
            head=head.get(name),
            blocks=not (recorded and name.startswith(CAUSED_BY_COMMIT)),
        )
        for name in sorted(base.keys() | head.keys())
        if base.get(name) != head.get(name)
    ]


def unpaired(base: Answers, head: Answers) -> str | None:
    """Why the arms' questions do not pair, or None: the same prompt and the same gold answer for each question."""
    shared = base.by_doc.keys() & head.by_doc.keys()
    if not shared:
        return "the arms share no answered question"
    for doc_id in sorted(shared):
        one, other = base.by_doc[doc_id], head.by_doc[doc_id]
        if (one.doc_hash, one.prompt_hash, one.target_hash) != (other.doc_hash, other.prompt_hash, other.target_hash):
            return f"question {doc_id} has another text, prompt or gold answer in base than in head"
    return None
