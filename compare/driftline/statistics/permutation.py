"""The paired permutation test: each question's difference could as well have had the other sign."""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

EXACT_UP_TO = 16
"""Questions with a difference up to which all 2**n signs are looked at: 65,536 sums take milliseconds."""

DRAWS = 10_000
"""Draws beyond that: the smallest p is then 1e-4, which Holm over a dozen cells leaves below 0.05."""

SEED = 20250801

BLOCK = 500
"""Draws made at a time, so that a full gsm8k takes 5 MB and not 100."""

TIE = 1e-12
"""Sums this much nearer to 0, relative to the observed one, still count as equal: rounding must not break ties."""


def sign_flip_p(differences: NDArray[np.float64], *, draws: int = DRAWS, seed: int = SEED) -> float:
    """Two-sided p of the mean of `differences` (shape (questions,)) under symmetry about 0; 1 if none differs.

    Source: Fisher 1935 (The Design of Experiments, section 21); the observed signs count as one of the drawn ones, so
    that p is never 0 and the test is valid, Phipson and Smyth 2010 (Stat. Appl. Genet. Mol. Biol. 9, 39).
    """
    moved = differences[differences != 0]
    reached = abs(float(moved.sum())) - TIE * float(np.abs(moved).sum())
    return _share(moved, lambda sums: np.abs(sums) >= reached, draws, seed)


def one_sided_sign_flip_p(differences: NDArray[np.float64], *, draws: int = DRAWS, seed: int = SEED) -> float:
    """P of a mean at least as high as that of `differences` (shape (questions,)); about a drop, negate them.

    Source: as `sign_flip_p`, one tail.
    """
    moved = differences[differences != 0]
    reached = float(moved.sum()) - TIE * float(np.abs(moved).sum())
    return _share(moved, lambda sums: sums >= reached, draws, seed)


def _share(moved: NDArray[np.float64], counts: Callable[..., NDArray[np.bool_]], draws: int, seed: int) -> float:
    """Share of signings whose sum counts: of all of them while they are few, else of the drawn ones and the observed."""
    if moved.size == 0:
        return 1.0
    if moved.size <= EXACT_UP_TO:
        signs = np.arange(2**moved.size)[:, None] >> np.arange(moved.size) & 1
        return float(np.mean(counts(_sums(signs, moved))))
    rng = np.random.default_rng(seed)
    hits = 0
    for start in range(0, draws, BLOCK):
        signs = rng.integers(0, 2, size=(min(BLOCK, draws - start), moved.size), dtype=np.int8)
        hits += int(np.count_nonzero(counts(_sums(signs, moved))))
    return (1 + hits) / (1 + draws)


def _sums(signs: NDArray[np.integer], moved: NDArray[np.float64]) -> NDArray[np.float64]:
    """Sums with sign + where `signs` is 1 and − where it is 0."""
    sums: NDArray[np.float64] = 2 * (signs.astype(np.float64) @ moved) - moved.sum()
    return sums
