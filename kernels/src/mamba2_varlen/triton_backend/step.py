"""dt as a step size, inside a kernel."""

import triton
import triton.language as tl


@triton.jit
def log1p(x):
    # log(1 + x) without losing a small x: the rounding of 1 + x is divided out again.
    shifted = 1.0 + x
    return tl.where(shifted == 1.0, x, tl.log(shifted) * (x / tl.where(shifted == 1.0, 1.0, shifted - 1.0)))


@triton.jit
def step_size(dt, bias, low, high, SOFTPLUS: tl.constexpr):
    dt = dt + bias
    if SOFTPLUS:
        dt = tl.where(dt <= 20.0, log1p(tl.exp(tl.minimum(dt, 20.0))), dt)
    return tl.minimum(tl.maximum(dt, low), high)


@triton.jit
def sum_and_keep(sum_a, keep_a, sum_b, keep_b):
    # For a scan over (decay, step): passing the step size through it computes that once, not again for every use.
    return sum_a + sum_b, keep_b
