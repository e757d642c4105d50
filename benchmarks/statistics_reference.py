"""The promise of exact McNemar with Holm on a whole run, simulated, against the project's reference figures.

Two lanes, two strongly coupled filters each, 1,319 questions: how often any cell is called where nothing changed, how
often a drop on one lane is called there, and how often all four cells lie inside the margin. Run in the control
environment: `python benchmarks/statistics_reference.py [--runs N] [--json]` (under a minute).
"""

import argparse
import json
import sys
from dataclasses import dataclass
from functools import cache

import numpy as np
from driftline.judge.cell import ALPHA
from driftline.statistics.equivalence import INTERVAL_LEVEL, within_margin
from driftline.statistics.mcnemar import exact_p
from driftline.statistics.paired_interval import paired_interval
from numpy.typing import NDArray

QUESTIONS = 1319
SHARES = (0.02, 0.04, 0.06, 0.10)
"""discordant share of each cell"""
MARGIN = 0.025
LANES = 2
COUPLING = 0.82
"""Share of a filter's changed answers that change in the same direction under the other filter too. The reference says
only "strongly coupled"; at 0.82 all its sixteen figures come out, at 0.7 and 0.95 they do not."""

SEED = 20261202


@dataclass(frozen=True)
class Reference:
    """One row of the reference: what is counted, the true drop on the first lane, and the figures in percent by share."""

    name: str
    drop: float
    percent: tuple[float, float, float, float]
    allowed: float
    """points: the reference's own rounding and simulation error, and ours"""


REFERENCES = (
    Reference("false alarm in any direction", 0.0, (2.4, 2.9, 3.1, 3.3), 0.35),
    Reference("2-point drop called", 0.02, (100, 91, 73, 48), 1.5),
    Reference("3-point drop called", 0.03, (100, 100, 99, 87), 1.5),
    Reference("all cells inside the margin", 0.0, (100, 98, 87, 46), 1.5),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000, help="simulated runs a figure")
    parser.add_argument("--json", action="store_true", help="one JSON object a row")
    options = parser.parse_args()
    rows = [(reference, simulated(reference, options.runs)) for reference in REFERENCES]
    for reference, ours in rows:
        if options.json:
            print(json.dumps({"name": reference.name, "reference": reference.percent, "simulated": ours}))
        else:
            figures = "  ".join(f"{x:5.1f} ({y:g})" for x, y in zip(ours, reference.percent, strict=True))
            print(f"{reference.name:30} {figures}")
    if not all(agrees(reference, ours) for reference, ours in rows):
        sys.exit("a figure is farther from the reference than both errors allow")


def agrees(reference: Reference, ours: list[float]) -> bool:
    return all(abs(x - y) <= reference.allowed for x, y in zip(ours, reference.percent, strict=True))


def simulated(reference: Reference, runs: int, seed: int = SEED) -> list[float]:
    """Percent by share of changed answers."""
    rng = np.random.default_rng(seed)
    return [round(100 * _share_of_runs(reference, share, runs, rng), 2) for share in SHARES]


def _share_of_runs(reference: Reference, share: float, runs: int, rng: np.random.Generator) -> float:
    lost, gained = counts(rng, share, reference.drop, runs)
    if reference.name == "all cells inside the margin":
        return float(_inside()[lost, gained].all(axis=1).mean())
    called = rejected(_p_values()[lost, gained])
    if reference.drop:
        called = (called & (lost > gained))[:, :LANES]
    return float(called.any(axis=1).mean())


def counts(
    rng: np.random.Generator, share: float, drop: float, runs: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Lost and gained answers, shape (runs, 4): both filters of the lane with the drop, then of the other lane."""
    lost, gained = [], []
    for lane_drop in (drop, 0.0):
        discordant = max(share, lane_drop)
        towards = np.array([(discordant + lane_drop) / 2, (discordant - lane_drop) / 2])
        cells = np.concatenate([COUPLING * towards, (1 - COUPLING) * towards, (1 - COUPLING) * towards])
        drawn = rng.multinomial(QUESTIONS, [*cells, 1 - cells.sum()], size=runs)
        lost += [drawn[:, 0] + drawn[:, 2], drawn[:, 0] + drawn[:, 4]]
        gained += [drawn[:, 1] + drawn[:, 3], drawn[:, 1] + drawn[:, 5]]
    return np.stack(lost, axis=1), np.stack(gained, axis=1)


def rejected(p_values: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Holm row by row: driftline.statistics.holm on many runs at once (a test compares them)."""
    order = np.argsort(p_values, axis=1, kind="stable")
    cells = p_values.shape[1]
    steps = np.take_along_axis(p_values, order, axis=1) * (cells - np.arange(cells))
    passed = np.cumprod(steps <= ALPHA, axis=1).astype(bool)
    result = np.empty_like(passed)
    np.put_along_axis(result, order, passed, axis=1)
    return result


MOST = 260
"""Lost or gained answers of one cell; twenty standard deviations above the largest mean here."""


@cache
def _p_values() -> NDArray[np.float64]:
    table = np.ones((MOST + 1, MOST + 1))
    for lost in range(MOST + 1):
        for gained in range(min(lost, 130) + 1):
            table[lost, gained] = table[gained, lost] = exact_p(lost, gained)
    return table


@cache
def _inside() -> NDArray[np.bool_]:
    """Whether Driftline's own interval lies inside the margin; far from balance it cannot."""
    table = np.zeros((MOST + 1, MOST + 1), dtype=bool)
    for lost in range(131):
        for gained in range(max(0, lost - 33), min(130, lost + 33) + 1):
            interval = paired_interval(lost, gained, QUESTIONS, level=INTERVAL_LEVEL)
            table[lost, gained] = within_margin(interval, MARGIN)
    return table


if __name__ == "__main__":
    main()
