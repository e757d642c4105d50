"""Word problems with worked answers, drawn from a seed: the canary's training stream, few-shot pool and test set.

Lives here: the distribution of problems and the two files in data/. Must not: tokens, models, scoring.

Every problem follows a few people who hold the same kind of thing through gains, losses and gifts, and asks what one of
them has at the end. Names and things are few on purpose: the worked examples before a question use the same ones, so a
model has to forget the examples and keep the question, and what it keeps has to survive a chunk boundary.
"""

import argparse
import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SEED = 20261202  # of the files in data/; the training stream uses SEED + 1 and up
TEST_SIZE = 1319  # gsm8k's own test size, so that standard errors compare
FEWSHOT_SIZE = 256  # rows of the pool that few-shot examples are drawn from
NAMES = ("Ann", "Ben", "Cara", "Dan", "Eve", "Finn", "Gina", "Hugo")
THINGS = ("apples", "pens", "coins", "cards", "books", "eggs", "shells", "stamps")
GAINS = ("finds", "buys", "gets")
LOSSES = ("loses", "sells", "drops")
LARGEST_START = 20  # things a person starts with
LARGEST_CHANGE = 9  # things in one event: one digit
STEPS = (1, 2, 3, 4)  # events that touch the person asked about
STEP_ODDS = (0.25, 0.25, 0.25, 0.25)
WORTH_ODDS = 0.3  # of a question that asks for a worth and needs the price from its first sentence
PRICES = (2, 3, 4, 5)  # coins for one thing, where the question asks for a worth


@dataclass(frozen=True)
class Family:
    """How crowded a problem is; fixed numbers, so that all questions of a family are about equally long."""

    people: int
    events: int


TRAINED = Family(people=3, events=4)  # the training stream and the few-shot pool
# One person and one event more than was ever trained: the canary answers nearly every trained problem, and a score near
# one would hide a small loss. Here it works at its limit, and its answers hang on what its state kept.
TESTED = Family(people=4, events=5)


@dataclass(frozen=True)
class Problem:
    """One question with its worked answer; `steps` counts the equations in the answer."""

    question: str
    answer: str
    steps: int


@dataclass(frozen=True)
class Event:
    """A change of `amount` to `who`, taken from `giver` if it is a gift."""

    who: str
    amount: int
    giver: str | None = None


def draw_problem(rng: random.Random, family: Family) -> Problem:
    """Draw one problem of a family; one to four of its events touch the person asked about."""
    people = rng.sample(NAMES, family.people)
    thing = rng.choice(THINGS)
    target = rng.choice(people)
    touching = rng.choices(STEPS, STEP_ODDS)[0]
    holdings = {name: rng.randint(2, LARGEST_START) for name in people}
    price = rng.choice(PRICES) if rng.random() < WORTH_ODDS else None
    sentences = [f"{name} has {holdings[name]} {thing}." for name in people]
    value, equations = holdings[target], []
    for touches in rng.sample([True] * touching + [False] * (family.events - touching), family.events):
        event = draw_event(rng, holdings, target, touches)
        change = apply_event(holdings, event, target)
        sentences.append(event_sentence(rng, event, thing))
        if touches:
            equations.append(f"{value} {'+' if change > 0 else '-'} {abs(change)} = {value + change}.")
            value += change
    if price is not None:
        sentences.insert(0, f"Each one costs {price} coins.")
        equations.append(f"{value} * {price} = {value * price}.")
        value *= price
    sentences.append(f"What are {target}'s {thing} worth?" if price else f"How many {thing} does {target} have now?")
    return Problem(" ".join(sentences), " ".join(equations) + f"\n#### {value}", len(equations))


def draw_event(rng: random.Random, holdings: dict[str, int], target: str, touches: bool) -> Event:
    """Draw an event that touches `target`, or one that does not; nobody loses more than they hold."""
    others = [name for name in holdings if name != target]
    who = target if touches else rng.choice(others)
    kind = rng.choice(("gain", "loss", "gift", "gift"))
    if kind == "gift":
        pool = others if touches else [name for name in others if name != who]
        giver, taker = (who, rng.choice(pool)) if rng.random() < 0.5 else (rng.choice(pool), who)
        if holdings[giver] > 0:
            return Event(taker, rng.randint(1, min(LARGEST_CHANGE, holdings[giver])), giver)
    if kind == "loss" and holdings[who] > 0:
        return Event(who, -rng.randint(1, min(LARGEST_CHANGE, holdings[who])))
    return Event(who, rng.randint(1, LARGEST_CHANGE))


def apply_event(holdings: dict[str, int], event: Event, target: str) -> int:
    """Apply the event in place and return the change of `target`'s holding."""
    before = holdings[target]
    holdings[event.who] += event.amount
    if event.giver is not None:
        holdings[event.giver] -= event.amount
    return holdings[target] - before


def event_sentence(rng: random.Random, event: Event, thing: str) -> str:
    """Say the event in words."""
    if event.giver is not None:
        return f"{event.giver} gives {event.amount} {thing} to {event.who}."
    verb = rng.choice(GAINS if event.amount > 0 else LOSSES)
    return f"{event.who} {verb} {abs(event.amount)} {thing}."


def stream(seed: int, banned: frozenset[str]) -> Iterator[Problem]:
    """Endless training problems; a question in `banned` (the files in data/) is never given."""
    rng = random.Random(seed)  # noqa: S311 - problems, not secrets
    while True:
        problem = draw_problem(rng, TRAINED)
        if problem.question not in banned:
            yield problem


def fixed_sets(seed: int = SEED) -> tuple[list[Problem], list[Problem]]:
    """The few-shot pool and the test set: no question twice, none in both."""
    rng = random.Random(seed)  # noqa: S311 - problems, not secrets
    seen: dict[str, Problem] = {}
    while len(seen) < TEST_SIZE:
        problem = draw_problem(rng, TESTED)
        seen.setdefault(problem.question, problem)
    test = list(seen.values())
    while len(seen) < TEST_SIZE + FEWSHOT_SIZE:
        problem = draw_problem(rng, TRAINED)
        seen.setdefault(problem.question, problem)
    return list(seen.values())[TEST_SIZE:], test


def read_problems(path: Path) -> list[Problem]:
    """Read a file that `write_problems` wrote."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [Problem(row["question"], row["answer"], row["answer"].count("=")) for row in rows]


def write_problems(path: Path, problems: list[Problem]) -> None:
    """Write one JSON object a line with gsm8k's two fields."""
    lines = [json.dumps({"question": p.question, "answer": p.answer}) for p in problems]
    path.write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the few-shot pool and the test set.")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "data")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    pool, test = fixed_sets()
    write_problems(out / "train.jsonl", pool)
    write_problems(out / "test.jsonl", test)
    print(f"{out}: {len(pool)} few-shot rows, {len(test)} test rows")


if __name__ == "__main__":
    main()
