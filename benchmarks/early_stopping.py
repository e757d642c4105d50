"""Early stopping over simulated runs: where lanes stop, and what it costs in power and false alarms.

Each run draws how many answers of 1,319 are lost and gained, shuffles them, and is looked at after each block of 100 by the
very rules of driftline.judge.stopping; a run that nothing stops gets the tests on all questions. Beside it stands the fixed test
(0.05, 90 % interval) on the same runs. Control environment: `python benchmarks/early_stopping.py [--runs N] [--json]`.
"""

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np
from driftline.judge.stopping import FULL_ALPHA, FULL_LEVEL, Pairs, Plan, StopKind, look, looks
from driftline.statistics.equivalence import within_margin
from driftline.statistics.holm import adjusted
from driftline.statistics.mcnemar import exact_p
from driftline.statistics.paired_interval import paired_interval
from numpy.typing import NDArray

QUESTIONS = 1319
MARGIN = 0.025
SEED = 21467
COUPLING = 0.85
"""Share of questions on which a lane's second filter answers as its first does; elsewhere it changes on its own."""

FIXED_ALPHA, FIXED_LEVEL = 0.05, 0.9


@dataclass(frozen=True)
class Scenario:
    """True shares of lost and gained answers on the first lane; further lanes have the same discordance and no drift."""

    name: str
    discordant: float
    drop: float
    lanes: int = 1
    filters: int = 1
    exactly: bool = False
    """the shares are those of the finite set itself, shuffled; else every answer is drawn"""

    @property
    def shares(self) -> tuple[float, float]:
        return (self.discordant + self.drop) / 2, (self.discordant - self.drop) / 2


SCENARIOS = (
    Scenario("no flips", 0.0, 0.0),
    *(Scenario(f"no change, {share:.0%}", share, 0.0) for share in (0.02, 0.04, 0.06, 0.10)),
    *(Scenario(f"drop 2 points, {share:.0%}", share, 0.02) for share in (0.02, 0.04, 0.06)),
    *(Scenario(f"drop 3 points, {share:.0%}", share, 0.03) for share in (0.04, 0.06, 0.10)),
    Scenario("drop 5 points, 6%", 0.06, 0.05),
    *(Scenario(f"drop 2.5 points, {share:.1%}", share, 0.025) for share in (0.025, 0.04, 0.06, 0.10, 0.20)),
    Scenario("no change, 6%, balanced set", 0.06, 0.0, exactly=True),
    *(Scenario(f"no change, {share:.0%}, 2 lanes x 2 filters", share, 0.0, 2, 2) for share in (0.02, 0.06, 0.10)),
    Scenario("drop 3 points, 6%, 2 lanes x 2 filters", 0.06, 0.03, 2, 2),
    Scenario("drop 2 points, 4%, 2 lanes x 2 filters", 0.04, 0.02, 2, 2),
)


@dataclass(frozen=True)
class Outcome:
    """Shares of runs, and the mean and median share of the first lane's questions that were asked."""

    scenario: str
    asked_mean: float
    asked_median: float
    moved: float
    fixed_moved: float
    equivalent: float
    fixed_equivalent: float
    stopped: dict[str, float]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--json", action="store_true", help="one JSON object a scenario instead of a table")
    options = parser.parse_args()
    if not options.json:
        print(
            f"{time.strftime('%Y-%m-%d')}, {options.runs:,} runs of {QUESTIONS} questions, margin {MARGIN}, seed {SEED}\n"
        )
        print("| scenario | asked, mean | median | called | fixed | equivalent | fixed | stopped as |")
        print("|---|---|---|---|---|---|---|---|")
    for scenario in SCENARIOS:
        found = simulate(scenario, runs=options.runs)
        print(json.dumps(asdict(found)) if options.json else row(found))
        sys.stdout.flush()


def row(found: Outcome) -> str:
    kinds = ", ".join(f"{kind} {share:.1%}" for kind, share in sorted(found.stopped.items())) or "never"
    return (
        f"| {found.scenario} | {found.asked_mean:.0%} | {found.asked_median:.0%} | {found.moved:.1%} | {found.fixed_moved:.1%} | "
        f"{found.equivalent:.1%} | {found.fixed_equivalent:.1%} | {kinds} |"
    )


def simulate(scenario: Scenario, *, runs: int, seed: int = SEED) -> Outcome:
    """`moved`: any lane called regressed or improved; `equivalent`: all lanes. Both beside the fixed test's."""
    rng = np.random.default_rng(seed)
    plan = Plan(QUESTIONS, MARGIN, scenario.lanes)
    counts = [
        _counts(rng, scenario, runs, drifts=lane == 0) for lane in range(scenario.lanes)
    ]  # per lane: (runs, looks + all, filters, lost and gained)
    verdicts = [_lane_verdicts(each, plan, scenario) for each in counts]
    full = np.stack([each[:, -1] for each in counts], axis=1)  # (runs, lanes, filters, 2)
    moved = equivalent = fixed_moved = fixed_equivalent = 0
    for run in range(runs):
        cells = tuple(tuple(int(n) for n in cell) for cell in full[run].reshape(-1, 2))
        stops = [lane[0][run] for lane in verdicts]
        calls = _full_calls(cells, FULL_ALPHA, FULL_LEVEL)
        width = scenario.filters
        lanes = [stop or _worst(calls[i * width : (i + 1) * width]) for i, stop in enumerate(stops)]
        moved += any(each in ("regressed", "improved") for each in lanes)
        equivalent += all(each == "equivalent" for each in lanes)
        fixed = _full_calls(cells, FIXED_ALPHA, FIXED_LEVEL)
        fixed_moved += any(each in ("regressed", "improved") for each in fixed)
        fixed_equivalent += all(each == "equivalent" for each in fixed)
    asked = verdicts[0][1] / QUESTIONS
    stopped = Counter(each for each in verdicts[0][0] if each)
    return Outcome(
        scenario.name, float(asked.mean()), float(np.median(asked)), moved / runs, fixed_moved / runs, equivalent / runs,
        fixed_equivalent / runs, {kind: n / runs for kind, n in stopped.items()},
    )  # fmt: skip


def _counts(rng: np.random.Generator, scenario: Scenario, runs: int, *, drifts: bool) -> NDArray[np.int64]:
    """(runs, looks + 1, filters, 2) lost and gained among the first questions, at each look and at the end."""
    lost, gained = scenario.shares if drifts else (scenario.discordant / 2, scenario.discordant / 2)
    first = _answers(rng, (lost, gained), runs, exactly=scenario.exactly)
    filters = [first]
    for _ in range(1, scenario.filters):
        own = rng.random(first.shape) >= COUPLING
        filters.append(np.where(own, _answers(rng, (lost, gained), runs, exactly=False), first))
    ends = [*(n - 1 for n in looks(Plan(QUESTIONS, MARGIN, 1))), QUESTIONS - 1]
    per_filter = [np.stack([np.cumsum(each == sign, axis=1)[:, ends] for sign in (-1, 1)], axis=-1) for each in filters]
    return np.stack(per_filter, axis=2)


def _answers(rng: np.random.Generator, shares: tuple[float, float], runs: int, *, exactly: bool) -> NDArray[np.int8]:
    """(runs, questions): −1 lost, 1 gained, 0 the same."""
    if exactly:
        lost, gained = (round(share * QUESTIONS) for share in shares)
        finite = np.repeat(np.array([-1, 1, 0], np.int8), [lost, gained, QUESTIONS - lost - gained])
        return rng.permuted(np.broadcast_to(finite, (runs, QUESTIONS)), axis=1)
    drawn = rng.random((runs, QUESTIONS), dtype=np.float32)
    lost, gained = shares
    return np.where(drawn < lost, -1, np.where(drawn < lost + gained, 1, 0)).astype(np.int8)


def _lane_verdicts(
    counts: NDArray[np.int64], plan: Plan, scenario: Scenario
) -> tuple[list[str | None], NDArray[np.int64]]:
    """For each run how the lane was stopped, None if it was not, and how many questions were asked."""
    kinds: list[str | None] = [None] * len(counts)
    asked = np.full(len(counts), QUESTIONS)
    for place, after in enumerate(looks(plan)):
        open_runs = [run for run, kind in enumerate(kinds) if kind is None]
        for run in open_runs:
            cells = tuple(tuple(int(n) for n in cell) for cell in counts[run, place])
            kind = _look(cells, after, plan)
            if kind is not None:
                kinds[run], asked[run] = kind, after
    return kinds, asked


@cache
def _look(cells: tuple[tuple[int, int], ...], after: int, plan: Plan) -> str | None:
    stop = look([Pairs(lost, gained, after) for lost, gained in cells], plan)
    if stop is None:
        return None
    return "underpowered" if stop.kind is StopKind.FUTILE else str(stop.kind)


def _full_calls(cells: tuple[tuple[int, int], ...], alpha: float, level: float) -> list[str]:
    """Each cell's verdict on all questions: exact McNemar with Holm over the cells, and the interval against the margin."""
    calls = []
    for (lost, gained), p in zip(cells, adjusted([_exact_p(*cell) for cell in cells], len(cells)), strict=True):
        if within_margin(_interval(lost, gained, level), MARGIN):
            calls.append("equivalent")
        elif p <= alpha:
            calls.append("regressed" if lost > gained else "improved")
        else:
            calls.append("underpowered")
    return calls


@cache
def _interval(lost: int, gained: int, level: float) -> tuple[float, float]:
    return paired_interval(lost, gained, QUESTIONS, level=level)


@cache
def _exact_p(lost: int, gained: int) -> float:
    return exact_p(lost, gained)


def _worst(calls: Sequence[str]) -> str:
    return next(each for each in ("regressed", "underpowered", "improved", "equivalent") if each in calls)


if __name__ == "__main__":
    main()
