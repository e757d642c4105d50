"""Questions, answers and log-probabilities of gsm8k's size for the load benchmarks, made up but scored for real."""

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Any

from driftline.contracts.lane import Lane, ModelSource, TaskSource
from driftline.contracts.words import Engine, Mode
from driftline.questions import fixed_order
from driftline.scoring import FILTERS, score

QUESTIONS = 1319
"""gsm8k's test set."""

FLAVOURS = 10
"""An evaluation is one of so many sets of answers; two of them differ in about one answer of eight."""

ANSWER_LETTERS = 293
"""Letters in the mean of gsm8k's gold answers; a model's own are as long."""

FORCED_TOKENS = 1000
"""Prompt with five shots, and the gold answer: 900 to 1100 tokens."""

WORDS = [
    "the",
    "number",
    "of",
    "apples",
    "that",
    "she",
    "sells",
    "each",
    "day",
    "at",
    "market",
    "is",
    "half",
    "what",
    "he",
    "earns",
    "for",
    "every",
    "week",
    "so",
    "then",
    "we",
    "add",
]


@dataclass(frozen=True, slots=True)
class Answer:
    doc_id: int
    rank: int
    question: str
    target: str
    response: str

    def digest(self, part: str) -> str:
        return sha256(f"{part}{self.doc_id}".encode()).hexdigest()


def lane(name: str) -> Lane:
    """A lane over all questions, as granite's of the shipped configuration is."""
    task = TaskSource(name="gsm8k", yaml="t.yaml", train="a.jsonl", test="b.jsonl", test_sha256="0" * 64,
                      train_sha256="0" * 64, total_questions=QUESTIONS)  # fmt: skip
    return Lane(name=name, model=ModelSource(name="granite", path="granite"), engine=Engine.HF, mode=Mode(name[-2:]),
                backend="torch", task=task, questions=QUESTIONS, engine_arguments={"batch_size": 16})  # fmt: skip


@cache
def answers(flavour: int) -> tuple[Answer, ...]:
    """One evaluation's answers in the fixed order; about 60 % are right."""
    return tuple(_answer(doc_id, rank, flavour) for rank, doc_id in enumerate(fixed_order(QUESTIONS, QUESTIONS)))


def _answer(doc_id: int, rank: int, flavour: int) -> Answer:
    fixed = random.Random(doc_id)  # noqa: S311 - made up, and the same each time
    gold = fixed.randrange(1000)
    moved = random.Random(f"{doc_id} {flavour}").random() < 0.06  # noqa: S311
    right = (fixed.random() < 0.6) != (moved and flavour % 2 == 1)
    text = " ".join(fixed.choices(WORDS, k=ANSWER_LETTERS // 5))
    said = f"{text}{' again' if moved else ''} <<{doc_id}+{gold}>>.\n#### {gold if right else gold + 1}"
    question = " ".join(fixed.choices(WORDS, k=45))
    return Answer(doc_id, rank, f"{question} {doc_id}?", f"{text}\n#### {gold}", said)


@cache
def scores(flavour: int) -> dict[str, Any]:
    """What lm-eval would say of them, as an attempt keeps it."""
    right = {name: sorted(each.doc_id for each in answers(flavour) if score(each.response, each.target)[name].right)
             for name in FILTERS}  # fmt: skip
    return {
        "type": "scores", "task_version": "3.0", "num_fewshot": 5, "task_hash": "t", "right": right,
        "metrics": {f"exact_match,{name}": len(ids) / QUESTIONS for name, ids in right.items()},
        "stderr": {f"exact_match,{name}": 0.0135 for name in right},
    }  # fmt: skip


def forced(flavour: int) -> Iterator[tuple[int, int, bytes]]:
    """(doc id, tokens of the prompt, log-probabilities) of each question."""
    for doc_id in range(QUESTIONS):
        drawn = random.Random(f"{doc_id} forced")  # noqa: S311
        count = FORCED_TOKENS + drawn.randrange(-100, 100)
        values = [-drawn.expovariate(1.3) * (1 + flavour * 1e-5) for _ in range(count)]
        yield doc_id, count - 100, struct.pack(f"<{count}f", *values)
