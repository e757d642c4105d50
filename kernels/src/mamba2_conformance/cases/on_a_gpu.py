"""What only a GPU shows: parallel sums, races, large grids, warps and stages, 16-bit products, real lengths."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import torch

from mamba2_conformance import oracle, tolerance
from mamba2_conformance.adapters.protocol import Adapter
from mamba2_conformance.case import OUTSIDE, Case, Subject
from mamba2_conformance.cases import carried_state, scanned, tile
from mamba2_conformance.deviation import Deviation, deviation, same_bits
from mamba2_conformance.draw import ScanShape, name_of
from mamba2_conformance.problem import Scan
from mamba2_conformance.trait import Trait

STATE = frozenset({"initial_states"})
HUGE = frozenset({Trait.HUGE_BATCH})
DTYPES = (torch.float32, torch.float16, torch.bfloat16)


@dataclass(frozen=True)
class Sizes:
    """rows: of a decode batch beyond the 65,535 blocks of a grid's second dimension; steps: of one long answer;
    racing: rows whose slots shift at once; long: tokens of a model's prompt."""

    rows: int = 70_000
    steps: int = 4096
    racing: int = 4096
    long: int = 2048


FULL = Sizes()

MODEL = ScanShape((FULL.long,), 256, heads=2, head_dim=64, state_size=128, dtype=torch.bfloat16, options=STATE)
"""Two heads of granite-4.0-h-tiny."""

LENS = ((1,), (255,), (256, 257), (138, 225), (500, 700, 900), (3,) * 17)
CHUNKS = (64, 128, 256)


def cases(adapter: Adapter) -> Iterator[Case]:
    yield gpu_case("carried_state/steep_decay", "lens 300 256, A -1e6, chunk 256", steep_decay)
    yield gpu_case("convolution/step_large_grid", f"rows {FULL.rows}, channels 8", large_convolution_step, asking=HUGE)
    yield gpu_case("convolution/step_racing_shift", f"rows {FULL.racing}, 3 steps, channels 64", racing_shift)
    yield gpu_case("state_update/large_grid", f"rows {FULL.rows}, heads 1 x 16", large_state_step, asking=HUGE)
    for dtype in DTYPES:
        yield gpu_case(
            f"state_update/long_answer_{name_of(dtype)}", f"rows 2, {FULL.steps} steps, state {name_of(dtype)}",
            long_answer(dtype),
        )  # fmt: skip
    yield from long_tiles(adapter)


def gpu_case(
    name: str,
    config: str,
    check: tile.Check,
    kind: str = "contract",
    *,
    asking: frozenset[Trait] = frozenset(),
) -> Case:
    traits = asking | ({Trait.CONVOLUTION} if name.startswith("convolution") else frozenset())
    return Case(name, config, check, kind=kind, backends=frozenset({tile.BACKEND}), traits=traits, needs_gpu=True)


def shapes() -> Iterator[Case]:
    """Lengths of every kind in every chunk size and dtype, with and without a carried state."""
    for lens in LENS:
        for chunk in CHUNKS:
            for dtype in DTYPES:
                for options in (frozenset[str](), STATE):
                    shape = replace(MODEL, lens=lens, chunk_size=chunk, dtype=dtype, options=options)
                    subject = "carried_state" if options else "packing"
                    label = f"{len(lens)}x3" if len(lens) > 3 else "_".join(map(str, lens))
                    case = scanned.scan_case(f"{subject}/model_{label}_chunk_{chunk}_{name_of(dtype)}", shape)
                    yield replace(case, needs_gpu=True)


def long_tiles(adapter: Adapter) -> Iterator[Case]:
    """Every tile with its warps and stages at a model's size: mamba 997 and triton 10486 were wrong for some stages."""
    scans = {
        kernel: tiles for kernel, tiles in adapter.tiles().items() if tile.operator_of(kernel)[0] == "carried_state"
    }
    for kernel, tiles in scans.items():
        for one in tiles:
            name = f"carried_state/long_tile_{kernel}_{tile.label(one)}"
            yield gpu_case(name, f"{MODEL}, {kernel} {one}", tile.pinned(model_prompt, kernel, one))
        name = f"carried_state/bits_of_tiles_{kernel}"
        yield gpu_case(name, f"{MODEL}, {kernel}, {len(tiles)} tiles", same_bits_of(kernel, tiles), OUTSIDE)


def model_prompt(subject: Subject) -> Sequence[Deviation]:
    return scanned.compared(subject, subject.draw.scan(MODEL))


def same_bits_of(kernel: str, tiles: Sequence[object]) -> tile.Check:
    """A tuner that chose another tile changes bits from process to process (vLLM 55895): told, never blamed."""

    def check(subject: Subject) -> Sequence[Deviation]:
        problem, first, found = subject.draw.scan(MODEL), None, []
        for one in tiles:
            with subject.adapter.pinned(kernel, one):
                out = subject.adapter.scan(problem, backend=subject.backend).out
            first = out if first is None else first
            found.append(same_bits(f"tile {tile.label(one)}", out, first))
        return found

    return check


def steep_decay(subject: Subject) -> Sequence[Deviation]:
    """vLLM 37501: a parallel running sum rounds a decay's exponent above 0, and Inf and NaN follow.

    Every token but its own has decayed to nothing here, so that the tolerance needs no allowance for the sums.
    """
    problem = subject.draw.scan(replace(carried_state.ODD, lens=(300, 256), chunk_size=256))
    steps = subject.draw.between(0.01, 20.0, *problem.dt.shape)
    problem: Scan = replace(problem, A=torch.full_like(problem.A, -1e6), dt=steps)
    want, limit = oracle.scan(problem), tolerance.relative([problem.x.dtype])
    got = subject.adapter.scan(problem, backend=subject.backend)
    return [
        deviation("out", got.out, want.out, limit),
        deviation("final_states", got.final_states, want.final_states, limit),
    ]


def large_convolution_step(subject: Subject) -> Sequence[Deviation]:
    """fla 1077: more rows than a grid's second or third dimension may have blocks."""
    step = subject.draw.convolution_step(FULL.rows, channels=8, width=4)
    out, states = oracle.convolution_step(step)
    got = subject.adapter.convolution_step(step, backend=subject.backend)
    limit = tolerance.relative([step.x.dtype])
    return [deviation("out", got, out, limit), deviation("state", step.state, states, limit)]


def large_state_step(subject: Subject) -> Sequence[Deviation]:
    step = subject.draw.state_step(FULL.rows, heads=1)
    out, states = oracle.state_step(step)
    got = subject.adapter.state_step(step, backend=subject.backend)
    limit = tolerance.of_state_step(step)
    return [deviation("out", got, out, limit), deviation("state", step.state, states, limit)]


def racing_shift(subject: Subject) -> Sequence[Deviation]:
    """vLLM 50729: a state shifted in place while it is read."""
    step, found = subject.draw.convolution_step(FULL.racing, channels=64, width=4), []
    limit = tolerance.relative([step.x.dtype])
    for count in range(3):
        out, states = oracle.convolution_step(step)
        got = subject.adapter.convolution_step(step, backend=subject.backend)
        found += [
            deviation(f"step {count} out", got, out, limit),
            deviation(f"step {count} state", step.state, states, limit),
        ]
        step = replace(subject.draw.convolution_step(FULL.racing, channels=64, width=4), state=step.state)
    return found


def long_answer(dtype: torch.dtype) -> tile.Check:
    """vLLM 39032: how far a state kept in 16 bits drifts over an answer, bounded by dtype and number of steps."""

    def check(subject: Subject) -> Sequence[Deviation]:
        step = subject.draw.state_step(2, heads=1)
        step = replace(step, state=step.state.to(dtype))
        exact = replace(step, state=step.state.double().cpu())
        for _ in range(FULL.steps):
            fresh = subject.draw.state_step(2, heads=1)
            step = replace(fresh, state=step.state, A=step.A)
            out, states = oracle.state_step(replace(step, state=exact.state))
            exact = replace(exact, state=torch.from_numpy(states))
            got = subject.adapter.state_step(step, backend=subject.backend)
        limit = tolerance.relative([dtype], length=FULL.steps)
        return [
            deviation("last out", got, out, limit),
            deviation("last state", step.state, exact.state.numpy(), limit),
        ]

    return check
