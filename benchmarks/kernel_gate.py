"""Equality before speed: what is measured must agree with the check's float64 oracle, within the check's tolerance.

Shapes are those of granite-4.0-h-tiny in bf16, lengths odd; the same kernels with the same tiles are timed afterwards.
"""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import mamba2_varlen
import torch
from mamba2_conformance import oracle, tolerance
from mamba2_conformance.adapters.protocol import Adapter
from mamba2_conformance.adapters.varlen import load
from mamba2_conformance.deviation import Deviation, deviation, same_bits
from mamba2_conformance.draw import Draw, ScanShape
from mamba2_conformance.problem import GatedNorm, Scan, StateStep, cut

BACKEND = "triton"
BF16 = torch.bfloat16
HEADS, HEADDIM, STATE, CHUNK = 48, 64, 128, 256
CHANNELS = HEADS * HEADDIM + 2 * STATE
LENS = (300, 1, 77)
SHAPE = ScanShape(
    LENS,
    CHUNK,
    heads=HEADS,
    head_dim=HEADDIM,
    state_size=STATE,
    dtype=BF16,
    options=frozenset({"D", "dt_bias", "initial_states"}),
    dt_softplus=True,
)


def faults() -> list[str]:
    """What is wrong, in words; empty if everything may be timed."""
    adapter = load(Path(mamba2_varlen.__file__).parents[1])
    draw = Draw("benchmark", "cuda")
    checks = (scan, convolution, state_step, norm)
    return [one.message or one.output for check in checks for one in check(adapter, draw) if not one.passed]


def scan(adapter: Adapter, draw: Draw) -> Iterator[Deviation]:
    """One call, the same call again to the bit, and the first prompt in two calls with its state carried."""
    problem = draw.scan(SHAPE)
    want, limit = oracle.scan(problem), tolerance.of_scan(problem)
    got, again = (adapter.scan(problem, backend=BACKEND) for _ in range(2))
    yield deviation("scan out", got.out, want.out, limit)
    yield deviation("scan final_states", got.final_states, want.final_states, limit)
    yield same_bits("scan out, run twice", again.out, got.out)
    yield same_bits("scan final_states, run twice", again.final_states, got.final_states)
    yield from _in_two_calls(adapter, problem, want.out[: LENS[0]], limit)


def _in_two_calls(adapter: Adapter, problem: Scan, want: oracle.Array, limit: float) -> Iterator[Deviation]:
    states = problem.initial_states
    first = adapter.scan(cut(problem, [(0, 130)], None if states is None else states[:1]), backend=BACKEND)
    second = adapter.scan(cut(problem, [(130, LENS[0])], first.final_states), backend=BACKEND)
    yield deviation("scan in two calls", torch.cat([first.out, second.out]), want, limit)


def convolution(adapter: Adapter, draw: Draw) -> Iterator[Deviation]:
    problem = draw.convolution(LENS, channels=CHANNELS, width=4, initial_states=True)
    problem = replace(problem, x=problem.x.to(BF16))
    out, states = oracle.convolution(problem)
    got = adapter.convolution(problem, backend=BACKEND)
    yield deviation("convolution out", got[0], out, tolerance.relative([BF16]))
    yield deviation("convolution states", got[1], states, tolerance.relative([BF16]))


def state_step(adapter: Adapter, draw: Draw) -> Iterator[Deviation]:
    for dtype in (torch.float32, BF16):
        problem = StateStep(
            state=draw.normal(5, HEADS, HEADDIM, STATE, dtype=dtype),
            x=draw.normal(5, HEADS, HEADDIM, dtype=BF16),
            dt=draw.between(0.05, 1.0, 5, HEADS),
            A=draw.between(-1.0, -0.1, HEADS),
            B=draw.normal(5, 1, STATE, dtype=BF16),
            C=draw.normal(5, 1, STATE, dtype=BF16),
        )
        out, states = oracle.state_step(problem)
        got = adapter.state_step(problem, backend=BACKEND)
        limit = tolerance.of_state_step(problem)
        yield deviation(f"state update out, {dtype} state", got, out, limit)
        yield deviation(f"state update, {dtype} state", problem.state, states, limit)


def norm(adapter: Adapter, draw: Draw) -> Iterator[Deviation]:
    for channels in (HEADS * HEADDIM, 8192):
        x, z = draw.normal(5, channels, dtype=BF16), draw.normal(5, channels, dtype=BF16)
        problem = GatedNorm(x=x, weight=draw.normal(channels), z=z)
        got = adapter.gated_norm(problem, backend=BACKEND)
        yield deviation(f"norm of {channels}", got, oracle.gated_norm(problem), tolerance.relative([BF16]))
