"""False alarms, detection and delay of change points on simulated histories of a lane.

Scores of 1,319 questions whose flips give a standard deviation of half a point between commits. Run in the control
environment: `python benchmarks/statistics_change_points.py [--histories N]` (two minutes on two cores).
"""

import argparse
from collections.abc import Callable
from math import sqrt

import numpy as np
from driftline.statistics.change_points import change_points
from numpy.typing import NDArray

NOISE = 0.005
SEED = 20261202
Draw = Callable[[np.random.Generator], NDArray[np.float64]]


def normal(count: int) -> Draw:
    return lambda rng: 0.6 + rng.normal(0, NOISE, count)


def spiky(count: int) -> Draw:
    """One commit in twenty is up to thirty points off."""

    def draw(rng: np.random.Generator) -> NDArray[np.float64]:
        return normal(count)(rng) + np.where(rng.random(count) < 0.05, rng.uniform(-0.3, 0.3, count), 0.0)

    return draw


def step(before: int, after: int, points: float) -> Draw:
    return lambda rng: normal(before + after)(rng) - np.repeat([0.0, points / 100], (before, after))


UNCHANGED: dict[str, Draw] = {
    "20 commits": normal(20), "60 commits": normal(60), "60 commits, 3 spikes": spiky(60),
}  # fmt: skip
CHANGED: dict[str, tuple[Draw, int]] = {
    f"{points:g} points, {before} before and {after} after": (step(before, after, points), before)
    for points in (1, 1.5, 2, 3)
    for before, after in ((20, 3), (20, 5), (20, 20))
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--histories", type=int, default=400, help="simulated histories a row")
    histories = parser.parse_args().histories
    rng = np.random.default_rng(SEED)
    print(f"{histories} histories a row, seed {SEED}; one standard error of a share s is sqrt(s (1 - s) / {histories})")
    for name, draw in UNCHANGED.items():
        alarms = np.mean([bool(change_points(draw(rng))) for _ in range(histories)])
        print(f"unchanged, {name:38} shown {alarms:6.1%} ± {sqrt(alarms * (1 - alarms) / histories):.1%}", flush=True)
    print(f"unchanged, looked at after each of commits 7 to 60  shown {repeated(rng, histories // 4):6.1%}", flush=True)
    for name, (draw, place) in CHANGED.items():
        found = [change_points(draw(rng)) for _ in range(histories)]
        near = np.mean([any(abs(each.index - place) <= 1 for each in points) for points in found])
        exact = np.mean([any(each.index == place for each in points) for points in found])
        print(f"changed by {name:38} found {near:6.1%}, at the very commit {exact:6.1%}", flush=True)


def repeated(rng: np.random.Generator, histories: int) -> float:
    """Share of unchanged histories that show a change at any of 54 looks."""
    alarms = 0
    for _ in range(histories):
        values = normal(60)(rng)
        alarms += any(change_points(values[:count], draws=399) for count in range(7, 61))
    return alarms / histories


if __name__ == "__main__":
    main()
