"""How far from the oracle a right kernel may be: from dtypes and the numbers' conditioning, never from a known bug.

A tolerance is relative to the largest wanted value of the output. Three things make a right kernel differ:
rounding of inputs, intermediate states and outputs to their dtype (FLOOR); sums that grow with the length; and the
decays exp(c_i - c_j) of a chunk, from a float32 running sum c of A dt whose rounding error grows with |c|.
"""

import math
from collections.abc import Iterable

import numpy as np
import torch

from mamba2_conformance.oracle import exact, time_steps
from mamba2_conformance.problem import Scan, StateStep, spans

FLOOR = {torch.float64: 1e-5, torch.float32: 1e-5, torch.float16: 2.0**-9, torch.bfloat16: 2.0**-6}
"""float32 kernels measure 1e-6 to 1e-5 (5e-3, often used, hides real bugs); float64 input is computed in float32.
16-bit dtypes get two units in the last place: one for the products of a tile, rounded before they are summed, and one
for the result, which Triton's interpreter cuts off instead of rounding."""

LENGTH = 512
"""Tokens up to which FLOOR holds; beyond, rounding errors of independent sign grow with the length's square root."""

DECAY_ROUNDINGS = 4.0
"""Roundings of a running sum that meet in one decay: both ends of c_i - c_j, the difference and the exponent's base."""


def relative(dtypes: Iterable[torch.dtype | None], *, length: int = 1, decay: float = 0.0) -> float:
    """Largest error, as a share of the largest wanted value, of a right kernel.

    dtypes: of inputs, state and output, None for float32; length: tokens of the longest sequence;
    decay: the largest sum of |A dt| inside one chunk, dimensionless.
    """
    floor = max(FLOOR[dtype or torch.float32] for dtype in dtypes)
    rounding = float(np.finfo(np.float32).eps) / 2
    return floor * max(1.0, math.sqrt(length / LENGTH)) + DECAY_ROUNDINGS * rounding * decay


def of_scan(problem: Scan) -> float:
    """The tolerance of everything an SSD prefill returns."""
    dtypes = (problem.x.dtype, problem.state_dtype)
    return relative(dtypes, length=max(problem.lens, default=1), decay=chunk_decay(problem))


def of_state_step(problem: StateStep) -> float:
    """The tolerance of a state update; one token's |A dt| is its whole decay."""
    decay = float(np.abs(time_steps(exact(problem.dt), problem) * exact(problem.A)).max(initial=0.0))
    return relative((problem.x.dtype, problem.state.dtype), decay=decay)


def chunk_decay(problem: Scan) -> float:
    """The largest sum of |A dt| over chunk_size tokens in a row of one sequence and head."""
    steps = np.abs(time_steps(exact(problem.dt), problem) * exact(problem.A))
    largest = 0.0
    for start, end in spans(problem.lens):
        sums = np.concatenate([np.zeros((1, steps.shape[1])), np.cumsum(steps[start:end], axis=0)])
        window = min(problem.chunk_size, end - start)
        largest = max(largest, float((sums[window:] - sums[: len(sums) - window]).max(initial=0.0)))
    return largest
