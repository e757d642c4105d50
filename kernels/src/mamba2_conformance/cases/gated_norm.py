"""RMS norm with a gate: before and after the norm, whole rows and groups, without a gate, tiny inputs."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import torch

from mamba2_conformance import oracle, tolerance
from mamba2_conformance.case import Case, Subject
from mamba2_conformance.deviation import Deviation, deviation, holds
from mamba2_conformance.problem import GatedNorm

ROWS, CHANNELS = 5, 96

CHANGES: dict[str, Callable[[GatedNorm], GatedNorm]] = {
    "gate_first": lambda norm: norm,
    "gate_last": lambda norm: replace(norm, norm_before_gate=True),
    "groups": lambda norm: replace(norm, group_size=32),
    "groups_gate_last": lambda norm: replace(norm, group_size=32, norm_before_gate=True),
    "without_gate": lambda norm: replace(norm, z=None),
    "eps_decides": lambda norm: replace(norm, x=norm.x * 1e-4, eps=1e-3),
    "bfloat16": lambda norm: replace(norm, x=norm.x.bfloat16(), z=None if norm.z is None else norm.z.bfloat16()),
    "one_row": lambda norm: replace(norm, x=norm.x[:1], z=None if norm.z is None else norm.z[:1]),
}


def cases() -> Iterator[Case]:
    for name, change in CHANGES.items():
        yield norm_case(f"gated_norm/{name}", change)


def norm_case(name: str, change: Callable[[GatedNorm], GatedNorm]) -> Case:
    def check(subject: Subject) -> Sequence[Deviation]:
        problem = change(subject.draw.gated_norm(ROWS, CHANNELS))
        got: torch.Tensor = subject.adapter.gated_norm(problem, backend=subject.backend)
        return [
            deviation("out", got, oracle.gated_norm(problem), tolerance.relative([problem.x.dtype])),
            holds("out", got.dtype == problem.x.dtype, f"out is {got.dtype}, x is {problem.x.dtype}"),
        ]

    return Case(name, f"rows {ROWS}, channels {CHANNELS}", check)
