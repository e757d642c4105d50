"""Stored responses scored again, and every question whose stored score is another. Pure: it reads and writes nothing."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from driftline.contracts.imports import RescoredAnswer, RescoredEvaluation, RescoredFilter, RescoreReport
from driftline.scoring import FILTERS, score


@dataclass(frozen=True, slots=True)
class StoredAnswer:
    """One question as it was stored: its response, and lm-eval's own score of it under each filter."""

    doc_id: int
    response: str
    target: str
    scores: Mapping[str, float]
    extracted: Mapping[str, str] = field(default_factory=dict)
    """what lm-eval took from the response, where that is known"""


@dataclass(slots=True)
class _Tally:
    questions: int = 0
    stored: float = 0.0
    rescored: float = 0.0
    differences: int = 0


def rescore(name: str, answers: Iterable[StoredAnswer]) -> RescoredEvaluation:
    """Score each response under gsm8k's filters and compare with what is stored, finite numbers.

    `answers` is read once, so that it may be a stream. Filters other than gsm8k's are named, never guessed at.
    """
    tallies: dict[str, _Tally] = {}
    unknown: set[str] = set()
    found: list[RescoredAnswer] = []
    digest = hashlib.sha256()
    for answer in answers:
        digest.update(_line(answer))
        ours = score(answer.response, answer.target)
        for filter_name, stored in sorted(answer.scores.items()):
            if filter_name not in FILTERS:
                unknown.add(filter_name)
                continue
            extracted, right = ours[filter_name]
            tally = tallies.setdefault(filter_name, _Tally())
            tally.questions += 1
            tally.stored += stored
            tally.rescored += right
            if stored != right:
                tally.differences += 1
                found.append(
                    RescoredAnswer(
                        doc_id=answer.doc_id, filter=filter_name, stored=stored, rescored=float(right),
                        extracted=extracted, stored_extracted=answer.extracted.get(filter_name),
                    )
                )  # fmt: skip
    return RescoredEvaluation(
        name=name, filters=[_filter(each, tallies[each]) for each in FILTERS if each in tallies],
        differences=sorted(found, key=lambda each: (each.filter, each.doc_id)), not_rescored=sorted(unknown),
        source_hash=digest.hexdigest(),
    )  # fmt: skip


def rescore_report(evaluations: Iterable[RescoredEvaluation]) -> RescoreReport:
    """All evaluations together; the same only if none has a difference."""
    listed = list(evaluations)
    return RescoreReport(same=not any(each.differences for each in listed), evaluations=listed)


def _filter(name: str, tally: _Tally) -> RescoredFilter:
    return RescoredFilter(
        filter=name, questions=tally.questions, stored_mean=tally.stored / tally.questions,
        rescored_mean=tally.rescored / tally.questions, differences=tally.differences,
    )  # fmt: skip


def _line(answer: StoredAnswer) -> bytes:
    """One answer as bytes, unmistakably: JSON with every character escaped, so that half a surrogate pair counts too."""
    return json.dumps([answer.doc_id, answer.response, answer.target, sorted(answer.scores.items())]).encode() + b"\n"
