"""What a scan can be given beside its inputs: D, z, dt's bias, softplus and limits, groups, dtypes. No states here."""

from collections.abc import Iterator
from dataclasses import replace

import torch

from mamba2_conformance.case import Case
from mamba2_conformance.cases.scanned import scan_case
from mamba2_conformance.draw import ScanShape
from mamba2_conformance.problem import Scan

PLAIN = ScanShape((7, 40))

SOFTPLUS_EDGES = (19.9, 20.0, 20.1, 100.0, 0.0, -20.0, -100.0)
"""dt before softplus. Above 20 kernels pass it through; two Triton versions got the neighbourhood wrong."""


def cases() -> Iterator[Case]:
    for name in ("D", "D_full", "z", "dt_bias"):
        yield scan_case(f"option/{name}", replace(PLAIN, options=frozenset({name})))
    yield scan_case("option/softplus", replace(PLAIN, dt_softplus=True, options=frozenset({"dt_bias"})))
    yield scan_case("option/softplus_edges", replace(PLAIN, dt_softplus=True), at_softplus_edges)
    yield scan_case("option/dt_limit", replace(PLAIN, dt_limit=(0.05, 0.1)))
    yield scan_case("option/dt_limit_softplus", replace(PLAIN, dt_limit=(0.02, 0.1), dt_softplus=True))
    yield scan_case("option/fast_decay", PLAIN, with_fast_decay)
    yield scan_case("option/groups_of_heads", replace(PLAIN, heads=4, groups=2))
    yield scan_case("option/group_for_each_head", replace(PLAIN, groups=2))
    yield scan_case("option/odd_head_dim", replace(PLAIN, head_dim=24))
    yield scan_case("option/state_larger_than_head", replace(PLAIN, state_size=64))
    yield scan_case("option/bfloat16", replace(PLAIN, dtype=torch.bfloat16, options=frozenset({"D", "z"})))
    yield scan_case("option/float16", replace(PLAIN, dtype=torch.float16))
    yield scan_case("option/bfloat16_state", replace(PLAIN, state_dtype=torch.bfloat16))


def at_softplus_edges(problem: Scan) -> Scan:
    """Every edge meets every head; A is small, so that a step of 100 does not wipe the state out."""
    edges = torch.tensor(SOFTPLUS_EDGES, device=problem.dt.device).repeat(problem.dt.shape[0])[: problem.dt.shape[0]]
    return replace(problem, dt=edges[:, None].expand_as(problem.dt).contiguous(), A=problem.A * 0.01)


def with_fast_decay(problem: Scan) -> Scan:
    """Running sums of thousands, as large |A| gives: nothing may overflow, and the decays must still be right."""
    return replace(problem, A=problem.A * 1000.0)
