"""The gate z * sigmoid(z), inside a kernel."""

import triton
import triton.language as tl


@triton.jit
def silu(z):
    # One quotient of a power of two: half the instructions of z * sigmoid(z), which bound the convolution's speed.
    return z / (1.0 + tl.exp2(z * -1.4426950408889634))
