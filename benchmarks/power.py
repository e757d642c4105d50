"""How often a true drop is called, by Driftline's rule and by what people use today.

Real pairs: `--data PATH` names gsm8k's example_model_solutions.jsonl (openai/grade-school-math: four models' answers to the
1,319 test questions). Both arms answer as the best model; some questions of each, drawn anew each time, are answered as
another one would. With as many in both arms nothing is true but noise; with more in head the expected drop is exact.
Simulated pairs: two coupled filters at given shares of changed answers. Run in the control environment:
`python benchmarks/power.py --data PATH [--runs N] [--markdown]` (a minute; without --data the simulation alone).
"""

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from math import sqrt
from pathlib import Path

import numpy as np
from driftline.judge.cell import ALPHA
from driftline.scoring import score
from driftline.statistics.equivalence import INTERVAL_LEVEL, within_margin
from driftline.statistics.mcnemar import exact_p
from driftline.statistics.paired_interval import paired_interval
from numpy.typing import NDArray

MARGIN = 0.025
SEED = 20261202
DROPS = (0.0, 0.01, 0.02, 0.03, 0.05)
BEST, OTHERS = "175b_verification", ("175b_finetuning", "6b_verification")
NOISES = (0.02, 0.06)
"""Share of answers that change between two arms of the same mixture, in the real pairs."""

SIMULATED = ((1319, (0.02, 0.04, 0.06, 0.10)), (300, (0.04, 0.10)))
SCORE = 0.6
COUPLING = 0.82
"""As in statistics_reference.py."""

BATCH = 250
"""Runs drawn at a time, so that a full gsm8k takes 3 MB an arm."""

Counts = NDArray[np.int64]
Calls = NDArray[np.bool_]


@dataclass(frozen=True)
class Drawn:
    """Many runs of one situation; each array of shape (runs, filters)."""

    n: int
    right: Counts
    """right answers of base"""
    lost: Counts
    gained: Counts

    @property
    def base(self) -> NDArray[np.float64]:
        return self.right / self.n

    @property
    def head(self) -> NDArray[np.float64]:
        return (self.right - self.lost + self.gained) / self.n


@dataclass(frozen=True)
class Situation:
    """A row of the table."""

    pairs: str
    n: int
    drop: float
    drawn: Drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="example_model_solutions.jsonl")
    parser.add_argument("--runs", type=int, default=10_000, help="simulated runs a row")
    parser.add_argument("--markdown", action="store_true", help="the table of docs/power.md")
    options = parser.parse_args()
    rng = np.random.default_rng(SEED)
    rows = [*(real(options.data, options.runs, rng) if options.data else ()), *simulated(options.runs, rng)]
    error = 100 * sqrt(0.25 / options.runs)
    print(
        f"{datetime.now(UTC):%Y-%m-%d}, seed {SEED}, {options.runs:,} runs a row; standard error at most {error:.1f} points\n"
    )
    write = "| {} |".format if options.markdown else "{}".format
    header = ("pairs", "n", "true drop", "changed", *RULES)
    print(write(" | ".join(header)))
    if options.markdown:
        print("|---|---:|---:|---:|" + "---:|" * len(RULES))
    for row in rows:
        print(write(" | ".join(_cells(row))), flush=True)


def _cells(row: Situation) -> list[str]:
    changed = float((row.drawn.lost + row.drawn.gained).mean()) / row.n
    calls = [f"{100 * rule(row.drawn).mean():.1f}" for rule in RULES.values()]
    return [row.pairs, f"{row.n:,}", f"{100 * row.drop:g}", f"{100 * changed:.1f} %", *calls]


def driftline(drawn: Drawn) -> Calls:
    """Rule 4 on the two cells: significant after Holm, downwards, and not wholly inside the margin."""
    return _any(significant(drawn) & ~_by_pair(drawn, lambda lost, gained: _inside(lost, gained, drawn.n)))


def test_alone(drawn: Drawn) -> Calls:
    """The same without the margin: any drop that is significant."""
    return _any(significant(drawn))


def unpaired(drawn: Drawn) -> Calls:
    """lm-eval's scripts/model_comparator.py: two-sided z of the two standard errors at 5 %, filter by filter."""
    errors = [share * (1 - share) / (drawn.n - 1) for share in (drawn.base, drawn.head)]
    return _any((drawn.head - drawn.base) / np.sqrt(errors[0] + errors[1]) < -1.959963984540054)


def floor(points: float) -> Callable[[Drawn], Calls]:
    """Head lower than base by more than an absolute tolerance, in either filter."""
    return lambda drawn: _any(drawn.head < drawn.base - points)


def relative(share: float) -> Callable[[Drawn], Calls]:
    return lambda drawn: _any(drawn.head < drawn.base * (1 - share))


RULES: dict[str, Callable[[Drawn], Calls]] = {
    "Driftline": driftline, "its test alone": test_alone, "unpaired stderr": unpaired, "0.03": floor(0.03),
    "0.05": floor(0.05), "8 % relative": relative(0.08), "0.08": floor(0.08),
}  # fmt: skip


def _any(calls: Calls) -> Calls:
    called: Calls = calls.any(axis=1)
    return called


def significant(drawn: Drawn) -> Calls:
    """Drops with p at most ALPHA after Holm over the two filters."""
    p_values = _by_pair(drawn, exact_p)
    least = 2 * p_values.min(axis=1, keepdims=True) <= ALPHA
    rejected = least & ((p_values <= ALPHA) | (p_values == p_values.min(axis=1, keepdims=True)))
    called: Calls = rejected & (drawn.lost > drawn.gained)
    return called


def _by_pair(drawn: Drawn, of: Callable[[int, int], float]) -> NDArray:  # type: ignore[type-arg]
    """`of` each (lost, gained), computed once for equal ones."""
    pairs = np.stack([drawn.lost.ravel(), drawn.gained.ravel()], axis=1)
    unique, place = np.unique(pairs, axis=0, return_inverse=True)
    values = np.array([of(int(lost), int(gained)) for lost, gained in unique])
    return values[place.ravel()].reshape(drawn.lost.shape)


@cache
def _inside(lost: int, gained: int, n: int) -> bool:
    return within_margin(paired_interval(lost, gained, n, level=INTERVAL_LEVEL), MARGIN)


def simulated(runs: int, rng: np.random.Generator) -> Iterator[Situation]:
    """Independent questions at a base score of 0.6; no drop can be larger than the share of changed answers."""
    for n, shares in SIMULATED:
        for share in shares:
            for drop in (each for each in DROPS if each <= share):
                towards = np.array([share + drop, share - drop]) / 2
                cells = np.concatenate([COUPLING * towards, (1 - COUPLING) * towards, (1 - COUPLING) * towards])
                each = rng.multinomial(n, [*cells, max(0.0, 1 - cells.sum())], size=runs)
                lost, gained = (
                    np.stack([each[:, side] + each[:, 2 + side], each[:, side] + each[:, 4 + side]], axis=1)
                    for side in (0, 1)
                )
                right = np.full_like(lost, round(SCORE * n))
                yield Situation("simulated", n, drop, Drawn(n, right, lost, gained))


def real(path: Path, runs: int, rng: np.random.Generator) -> Iterator[Situation]:
    """Mixtures of the best model's answers with another's."""
    answers = right_answers(path)
    best = answers[BEST]
    for other in OTHERS:
        differs = float((best != answers[other]).any(axis=1).mean())
        gap = float((best.mean(axis=0) - answers[other].mean(axis=0)).mean())
        for noise in NOISES:
            # Of two arms with a share w of the other's answers each, 2w(1 − w) of the differing questions differ.
            mixed = (1 - sqrt(1 - 2 * noise / differs)) / 2
            for drop in DROPS:
                shares = (mixed, mixed + drop / gap)
                yield Situation(
                    f"{BEST} with {other}", len(best), drop, mixture(best, answers[other], shares, runs, rng)
                )


def right_answers(path: Path) -> dict[str, NDArray[np.bool_]]:
    """Model -> what is right under each of gsm8k's filters, shape (questions, filters).

    The file marks an answer with "A:" where gsm8k's prompts have "####"; that marker is all that is changed.
    """
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]

    def marked(text: str) -> str:
        return text.replace("\nA: ", "\n#### ")

    return {
        model: np.array([
            [each.right for each in score(marked(row[model]["solution"]), marked(row["ground_truth"])).values()]
            for row in rows
        ])
        for model in (BEST, *OTHERS)
    }  # fmt: skip


def mixture(
    best: NDArray[np.bool_], other: NDArray[np.bool_], shares: tuple[float, float], runs: int, rng: np.random.Generator
) -> Drawn:
    """Runs in which each arm answers a drawn share of the questions, its own, as the other model would."""
    parts = []
    for start in range(0, runs, BATCH):
        size = (min(BATCH, runs - start), len(best))
        base, head = (np.where((rng.random(size) < share)[..., None], other, best) for share in shares)
        parts.append([each.sum(axis=1) for each in (base, base & ~head, head & ~base)])
    right, lost, gained = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Drawn(len(best), right, lost, gained)


if __name__ == "__main__":
    main()
