"""The calls whose kernels are compiled: each operator once or twice, in the shapes of granite-4.0-h-tiny.

Tensors are real but hold nothing of interest; how kernels are recorded and compiled is not decided here.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch

from mamba2_conformance.adapters.protocol import Adapter
from mamba2_conformance.draw import Draw, ScanShape
from mamba2_conformance.problem import Convolution, ConvolutionStep, GatedNorm, Scan, StateStep
from mamba2_conformance.trait import Trait

HEADS, HEAD_DIM, STATE, CHUNK, WIDTH = 48, 64, 128, 256, 4
INNER = HEADS * HEAD_DIM
CHANNELS = INNER + 2 * STATE
LENS = (CHUNK, CHUNK)
ROWS = 4
BACKEND = "triton"

PATHS = ("ssd_walk", "ssd_piece")
"""Kernels that serve 16-bit tensors on a GPU alone, so that CPU tensors would not show them to the recorder."""

SHAPE = ScanShape(
    LENS,
    CHUNK,
    heads=HEADS,
    head_dim=HEAD_DIM,
    state_size=STATE,
    dtype=torch.bfloat16,
    options=frozenset({"D", "z", "dt_bias", "initial_states"}),
    dt_softplus=True,
)
SIZE = f"{HEADS} heads x {HEAD_DIM}, state {STATE}, chunk {CHUNK}, bfloat16, float32 state"


@dataclass(frozen=True)
class Scenario:
    """`config` names it in reports and stays the same from commit to commit, so that builds can be compared.

    every_tile: compile each of a tuner's candidates and not only the one in force here.
    """

    config: str
    call: Callable[[Adapter], object]
    every_tile: bool = False


def scenarios() -> list[Scenario]:
    """With and without a carried state, for kernels specialise on it and have failed to compile for one alone."""
    scan, past = prefill_scan(), prefill_convolution()
    return [
        Scenario(
            f"prefill from a state, {SIZE}",
            lambda to: to.scan(scan, backend=BACKEND, states=Trait.INTERMEDIATE_STATES not in to.lacks),
            every_tile=True,
        ),
        Scenario(
            f"prefill, {SIZE}",
            lambda to: to.scan(replace(scan, initial_states=None, z=None), backend=BACKEND),
        ),
        *(
            Scenario(f"prefill from a state by {kernel}, {SIZE}", lambda to, kernel=kernel: by_path(to, kernel, scan))
            for kernel in PATHS
        ),
        Scenario(
            f"prefill from a state, {CHANNELS} channels, width {WIDTH}, bfloat16",
            lambda to: to.convolution(past, backend=BACKEND),
        ),
        Scenario(
            f"prefill, {CHANNELS} channels, width {WIDTH}, bfloat16",
            lambda to: to.convolution(replace(past, initial_states=None), backend=BACKEND),
        ),
        Scenario(
            f"decode, {CHANNELS} channels, width {WIDTH}, bfloat16",
            lambda to: to.convolution_step(decode_convolution(), backend=BACKEND),
        ),
        Scenario(f"decode, {SIZE}", lambda to: to.state_step(decode_state(), backend=BACKEND)),
        Scenario(f"{INNER} channels, bfloat16", lambda to: to.gated_norm(norm(), backend=BACKEND)),
    ]


def by_path(to: Adapter, kernel: str, problem: Scan) -> object:
    """The scan through a kernel that only a GPU's tensors reach, asked for by pinning its first tile; nothing without it."""
    tiles = to.tiles().get(kernel)
    if not tiles:
        return None
    with to.pinned(kernel, tiles[0]):
        return to.scan(problem, backend=BACKEND, states=True)


def prefill_scan() -> Scan:
    return Draw("scan", "cpu").scan(SHAPE)


def prefill_convolution() -> Convolution:
    return Convolution(
        lens=LENS,
        x=zeros(sum(LENS), CHANNELS),
        weight=zeros(CHANNELS, WIDTH),
        bias=zeros(CHANNELS),
        initial_states=zeros(len(LENS), CHANNELS, WIDTH - 1),
        activation="silu",
    )


def decode_convolution() -> ConvolutionStep:
    return ConvolutionStep(
        x=zeros(ROWS, CHANNELS),
        state=zeros(ROWS, CHANNELS, WIDTH - 1),
        weight=zeros(CHANNELS, WIDTH),
        bias=zeros(CHANNELS),
        activation="silu",
        state_indices=slots(),
    )


def decode_state() -> StateStep:
    return StateStep(
        state=torch.zeros(ROWS, HEADS, HEAD_DIM, STATE),
        x=zeros(ROWS, HEADS, HEAD_DIM),
        dt=zeros(ROWS, HEADS),
        A=torch.zeros(HEADS),
        B=zeros(ROWS, 1, STATE),
        C=zeros(ROWS, 1, STATE),
        D=torch.zeros(HEADS),
        dt_bias=torch.zeros(HEADS),
        dt_softplus=True,
        state_indices=slots(),
    )


def norm() -> GatedNorm:
    return GatedNorm(x=zeros(ROWS, INNER), weight=zeros(INNER), z=zeros(ROWS, INNER))


def zeros(*shape: int) -> torch.Tensor:
    return torch.zeros(shape, dtype=torch.bfloat16)


def slots() -> torch.Tensor:
    return torch.arange(ROWS, dtype=torch.int32)
