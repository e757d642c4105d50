"""What the noise floor, the rule for an unstable lane and the confirmation promise, simulated on 1,319 questions.

Flips are not spread evenly: half of them fall on a tenth of the questions. Evaluations of one commit come in a row, each
paired with the one before, as the service pairs them. Run in the control environment:
`python benchmarks/statistics_noise.py [--runs N]` (a minute).
"""

import argparse
from math import sqrt

import numpy as np
from driftline.judge.confirmation import CONFIRMATION_ALPHA
from driftline.judge.noise import differs_from_itself
from driftline.statistics.equivalence import INTERVAL_LEVEL
from driftline.statistics.mcnemar import exact_p, one_sided_p
from driftline.statistics.proportion import clustered_share, exact_share
from numpy.typing import NDArray

QUESTIONS = 1319
SHARE = 0.04
"""of the answers that change between two evaluations"""

PAIRS = (1, 4, 10)
SEED = 20261202
Right = NDArray[np.bool_]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000, help="simulated lanes a row")
    runs = parser.parse_args().runs
    rng = np.random.default_rng(SEED)
    print(f"seed {SEED}, {runs:,} lanes a row, {SHARE:.0%} of the answers change between two evaluations of one commit")
    for pairs in PAIRS:
        covered, unstable, beyond = np.mean([quiet_lane(rng, pairs) for _ in range(runs)], axis=0)
        print(f"{pairs:2} A/A pairs: interval of the flip rate covers {_share(covered, runs)}")
        print(f"{'':14}called unstable {_share(unstable, runs)}")
        print(f"{'':14}arms without a change called beyond the noise {_share(beyond, runs)}", flush=True)
    for points in (1, 2, 3, 5):
        seen = np.mean([moving_lane(rng, points / 100) for _ in range(runs)])
        print(
            f"a lane that moves by {points} points between two evaluations of one commit is called unstable {_share(seen, runs)}"
        )
    for points in (0, 1, 2, 3):
        agreed = np.mean([fresh_pair_agrees(rng, points / 100) for _ in range(runs)])
        print(f"a fresh pair agrees with a first hit where the true drop is {points} points: {_share(agreed, runs)}")


def _share(share: float, runs: int) -> str:
    return f"{share:6.2%} ± {sqrt(share * (1 - share) / runs):.2%}"


def chances(rng: np.random.Generator) -> NDArray[np.float64]:
    """Chance of each question to be answered right: most are 0 or 1, some hover.

    Two evaluations differ on a question with 2c(1 − c); a tenth of the questions carry half of all flips.
    """
    prone = rng.random(QUESTIONS) < 0.1
    flip = np.where(prone, SHARE * 5, SHARE * 5 / 9)
    right = rng.random(QUESTIONS) < 0.6
    away = (1 - np.sqrt(1 - 2 * flip)) / 2
    return np.where(right, 1 - away, away)


def evaluations(rng: np.random.Generator, chance: NDArray[np.float64], count: int) -> Right:
    """Shape (evaluations, questions)."""
    return rng.random((count, QUESTIONS)) < chance


def quiet_lane(rng: np.random.Generator, pairs: int) -> tuple[bool, bool, bool]:
    """Nothing but noise: whether the interval covers, whether the lane is called unstable, the arms beyond the noise."""
    chance = chances(rng)
    right = evaluations(rng, chance, pairs + 1)
    flips = right[1:] != right[:-1]
    interval = clustered_share(flips.sum(axis=0), np.full(QUESTIONS, pairs), level=INTERVAL_LEVEL)
    expected = float(np.mean(2 * chance * (1 - chance)))
    base, head = evaluations(rng, chance, 2)
    arms = exact_share(int((base != head).sum()), QUESTIONS, level=INTERVAL_LEVEL)
    return interval[0] <= expected <= interval[1], differs_from_itself(_counts(right)), arms[0] > interval[1]


def _counts(right: Right) -> list[tuple[int, int]]:
    lost, gained = (right[:-1] & ~right[1:]).sum(axis=1), (right[1:] & ~right[:-1]).sum(axis=1)
    return [(int(a), int(b)) for a, b in zip(lost, gained, strict=True)]


def moving_lane(rng: np.random.Generator, drop: float) -> bool:
    """Two evaluations of one commit of which the second lost `drop` of the questions, besides noise."""
    chance = chances(rng)
    first, second = evaluations(rng, chance, 2)
    second &= ~(rng.random(QUESTIONS) < drop / 0.6)
    return differs_from_itself(_counts(np.stack([first, second])))


def fresh_pair_agrees(rng: np.random.Generator, drop: float) -> bool:
    """A second pair after a first that was significant, on the same questions, of which the change loses the same ones."""
    while True:
        chance = chances(rng)
        changed = np.where(rng.random(QUESTIONS) < drop / 0.6, 0.0, chance)
        (lost, gained), fresh = (_counts(np.stack([*evaluations(rng, chance, 1), *evaluations(rng, changed, 1)]))[0]
                                 for _ in range(2))  # fmt: skip
        if lost > gained and exact_p(lost, gained) <= 0.05:
            return one_sided_p(*fresh) <= CONFIRMATION_ALPHA


if __name__ == "__main__":
    main()
