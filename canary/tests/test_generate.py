"""The generator gives the same problems for the same seed, and its worked answers are right."""

import json
import re
from itertools import islice
from pathlib import Path

from generate import FEWSHOT_SIZE, GAINS, SEED, TEST_SIZE, Problem, fixed_sets, stream

DATA = Path(__file__).parents[1] / "data"


def solve(question: str) -> int:
    """An independent solver that reads the words and shares nothing with the generator."""
    holding: dict[str, int] = {}
    price = 1
    for sentence in question.replace("?", ".").split(". "):
        if match := re.fullmatch(r"Each one costs (\d+) coins", sentence):
            price = int(match[1])
        elif match := re.fullmatch(r"(\w+) has (\d+) \w+", sentence):
            holding[match[1]] = int(match[2])
        elif match := re.fullmatch(r"(\w+) gives (\d+) \w+ to (\w+)", sentence):
            holding[match[1]] -= int(match[2])
            holding[match[3]] += int(match[2])
        elif match := re.fullmatch(r"(\w+) (\w+) (\d+) \w+", sentence):
            holding[match[1]] += int(match[3]) * (1 if match[2] in GAINS else -1)
    asked = re.search(r"(?:does (\w+) have now|What are (\w+)'s)", question)
    return holding[asked[1] or asked[2]] * price


def check_worked(problem: Problem) -> None:
    body, gold = problem.answer.split("\n#### ")
    for left, op, right, result in re.findall(r"(\d+) ([-+*]) (\d+) = (\d+)\.", body):
        a, b = int(left), int(right)
        assert int(result) == {"+": a + b, "-": a - b, "*": a * b}[op], problem
    assert body.endswith(f"= {gold}."), problem
    assert int(gold) == solve(problem.question), problem
    assert problem.steps == body.count("=")


def test_same_seed_same_problems_and_other_seed_others() -> None:
    first, again, other = (list(islice(stream(seed, frozenset()), 50)) for seed in (7, 7, 8))
    assert first == again
    assert first != other


def test_every_worked_answer_is_right() -> None:
    pool, test = fixed_sets()
    for problem in [*pool, *test, *islice(stream(3, frozenset()), 2000)]:
        check_worked(problem)


def test_files_are_what_the_seed_gives() -> None:
    for name, problems in zip(("train", "test"), fixed_sets(SEED), strict=True):
        rows = [json.loads(line) for line in (DATA / f"{name}.jsonl").read_text().splitlines()]
        assert rows == [{"question": p.question, "answer": p.answer} for p in problems]


def test_no_test_question_is_trained_on() -> None:
    pool, test = fixed_sets()
    questions = {p.question for p in test}
    assert (len(pool), len(test), len(questions)) == (FEWSHOT_SIZE, TEST_SIZE, TEST_SIZE)
    assert not questions & {p.question for p in pool}
    open_stream = list(islice(stream(5, frozenset()), 20))
    banned = frozenset(p.question for p in open_stream[:10])
    assert list(islice(stream(5, banned), 10)) == open_stream[10:]
