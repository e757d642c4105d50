"""Time on a GPU, and a row of the table. What is timed is not decided here."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar

import torch
import triton

COPIED_BYTES = 1 << 30


@dataclass(frozen=True)
class Row:
    """One operator at one point: milliseconds from Python (`eager`) and of a replayed graph, ours and each peer's.

    floor_ms: the bytes that must move at copy bandwidth, or None where no such limit holds.
    """

    part: str
    point: str
    eager_ms: float
    graph_ms: float
    floor_ms: float | None
    peers: dict[str, tuple[float, float]] = field(default_factory=dict)

    HEADER: ClassVar[str] = (
        f"{'part':10} {'point':34} {'eager ms':>9} {'graph ms':>9} {'of floor':>9}  ratios (eager, graph)"
    )

    def ratio(self, peer: str) -> float | None:
        """How many times faster than a peer, called from Python as engines do; None where the peer is absent."""
        return self.peers[peer][0] / self.eager_ms if peer in self.peers else None

    def line(self) -> str:
        share = f"{self.floor_ms / self.graph_ms:9.0%}" if self.floor_ms else f"{'':9}"
        ratios = "  ".join(
            f"{name} {eager / self.eager_ms:.2f}, {graph / self.graph_ms:.2f}"
            for name, (eager, graph) in self.peers.items()
        )
        return f"{self.part:10} {self.point:34} {self.eager_ms:9.4f} {self.graph_ms:9.4f} {share}  {ratios}"


def copy_bandwidth() -> float:
    """Bytes a second of a large device-to-device copy, read and write counted."""
    source = torch.empty(COPIED_BYTES, dtype=torch.uint8, device="cuda").random_()
    target = torch.empty_like(source)
    return 2 * COPIED_BYTES / (eager(lambda: target.copy_(source)) * 1e-3)


def both(call: Callable[[], object]) -> tuple[float, float]:
    """(eager, graph) milliseconds; the first call, in which a tuner may run, is not counted."""
    call()
    torch.cuda.synchronize()
    return eager(call), graph(call)


def eager(call: Callable[[], object]) -> float:
    """Median milliseconds from Python, events around the call, L2 cleared before it."""
    return float(triton.testing.do_bench(call, warmup=10, rep=60, return_mode="median"))


def graph(call: Callable[[], object]) -> float:
    """Median milliseconds of one captured call, replayed with a cleared L2."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        call()
    torch.cuda.current_stream().wait_stream(side)
    captured = torch.cuda.CUDAGraph()
    with torch.cuda.graph(captured):
        call()
    return eager(captured.replay)


def peak_extra_bytes(call: Callable[[], object]) -> int:
    """Memory that a call allocates at its peak beyond what was there, its results included."""
    call()
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    kept = call()
    torch.cuda.synchronize()
    peak = torch.cuda.max_memory_allocated() - before
    del kept
    return peak
