"""What is measured: each operator at its points, ours and the peers', with the bytes that must move. No clock here."""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import mamba2_varlen as m2
import torch
from kernel_clock import Row, both, peak_extra_bytes
from torch import Tensor

BF16, F32 = torch.bfloat16, torch.float32
HEADDIM, STATE, CHUNK, WIDTH = 64, 128, 256, 4
Peers = dict[str, Callable[[], object]]


@dataclass(frozen=True)
class Prefill:
    """Heads x 64, d_state 128, one group, chunk 256; `sequences` of equal length, each from a carried state."""

    name: str
    heads: int
    tokens: int
    sequences: int

    @property
    def channels(self) -> int:
        return self.heads * HEADDIM + 2 * STATE

    def __str__(self) -> str:
        return f"{self.name} {self.tokens} tokens, {self.sequences} seqs"


PREFILLS = tuple(
    Prefill(name, heads, *size)
    for name, heads in (("h-tiny", 48), ("h-small", 128))
    for size in ((8192, 8), (32768, 32), (65536, 4))
)


class Inputs:
    """Random tensors of one prefill step, and the metadata all its operators share."""

    def __init__(self, point: Prefill) -> None:
        torch.manual_seed(0)
        tokens, heads, length = point.tokens, point.heads, point.tokens // point.sequences
        self.point = point
        self.boundaries = [length * one for one in range(point.sequences + 1)]
        self.metadata = m2.build_metadata(self.boundaries, chunk_size=CHUNK, device="cuda")
        self.packed = _normal(tokens, point.channels)
        self.weight, self.bias = _normal(point.channels, WIDTH), _normal(point.channels)
        self.history = _normal(point.sequences, point.channels, WIDTH - 1)
        self.x = _normal(tokens, heads, HEADDIM)
        self.B, self.C = _normal(tokens, 1, STATE), _normal(tokens, 1, STATE)
        self.dt = (torch.randn(tokens, heads, device="cuda") * 0.5 - 3).to(BF16)
        self.A, self.D = -torch.rand(heads, device="cuda") - 0.1, torch.randn(heads, device="cuda")
        self.dt_bias = torch.rand(heads, device="cuda") * 0.5
        self.states = torch.randn(point.sequences, heads, HEADDIM, STATE, device="cuda")
        self.z, self.norm_weight = _normal(tokens, heads * HEADDIM), _normal(heads * HEADDIM)
        self.out = torch.empty_like(self.x)


def rows(vllm: dict[str, Any] | None, mamba: Any | None, bandwidth: float, *, quick: bool) -> Iterator[Row]:
    """Every part of the table, prefill first."""
    for point in PREFILLS[:1] if quick else PREFILLS:
        yield from prefill_rows(Inputs(point), vllm, mamba, bandwidth)
        torch.cuda.empty_cache()
    for batch in (256,) if quick else (256, 1024):
        for dtype in (F32, BF16):
            yield state_row(batch, dtype, vllm, bandwidth)
            torch.cuda.empty_cache()
    yield metadata_row(vllm)


def prefill_rows(inputs: Inputs, vllm: dict[str, Any] | None, mamba: Any | None, bandwidth: float) -> Iterator[Row]:
    """Scan, convolution and norm of one step, then the three together."""
    point = inputs.point
    scans = {"vllm": vllm_scan(vllm, inputs)} if vllm else {}
    if mamba:
        scans["mamba"] = mamba_scan(mamba, inputs)
    convolutions = {"vllm": vllm_convolution(vllm, inputs)} if vllm else {}
    norms = {"vllm": vllm_norm(vllm, inputs)} if vllm else {}
    inner, state_bytes = point.heads * HEADDIM, 2 * 4 * inputs.states.numel()
    sizes = {
        "scan": point.tokens * (4 * inner + 4 * STATE + 2 * point.heads) + state_bytes,
        "conv": point.tokens * 4 * point.channels,
        "norm": point.tokens * 6 * inner,
    }
    calls = {"scan": ours_scan(inputs), "conv": ours_convolution(inputs), "norm": ours_norm(inputs)}
    peers = {"scan": scans, "conv": convolutions, "norm": norms}
    for part, call in calls.items():
        yield _row(part, str(point), call, sizes[part] / bandwidth, peers[part])
    yield _row("step", str(point), _all(calls), sum(sizes.values()) / bandwidth, _together(peers))
    if point.tokens == PREFILLS[-1].tokens:
        extra = {name: peak_extra_bytes(call) for name, call in {"ours": calls["scan"], **scans}.items()}
        print(f"{'':10} {point}: extra memory of the scan at its peak, MB: {_megabytes(extra)}", flush=True)


def ours_scan(i: Inputs) -> Callable[[], object]:
    return lambda: m2.ssd_prefill(
        i.x, i.dt, i.A, i.B, i.C, metadata=i.metadata, D=i.D, dt_bias=i.dt_bias, dt_softplus=True,
        initial_states=i.states, out=i.out, backend="triton",
    )  # fmt: skip


def ours_convolution(i: Inputs) -> Callable[[], object]:
    return lambda: m2.causal_conv1d_prefill(
        i.packed, i.weight, i.bias, metadata=i.metadata, initial_states=i.history, activation="silu", backend="triton"
    )


def ours_norm(i: Inputs) -> Callable[[], object]:
    return lambda: m2.rms_norm_gated(i.out.view_as(i.z), i.norm_weight, z=i.z, backend="triton")


def vllm_scan(vllm: dict[str, Any], i: Inputs) -> Callable[[], object]:
    boundaries = torch.tensor(i.boundaries, dtype=torch.int32, device="cuda")
    chunks, last, sequence = vllm["compute_varlen_chunk_metadata"](boundaries, CHUNK)
    out = torch.empty_like(i.x)
    return lambda: vllm["mamba_chunk_scan_combined_varlen"](
        i.x, i.dt, i.A, i.B, i.C, CHUNK, boundaries, chunks, last, sequence, out, D=i.D, dt_bias=i.dt_bias,
        initial_states=i.states, dt_softplus=True, state_dtype=F32,
    )  # fmt: skip


def mamba_scan(scan: Any, i: Inputs) -> Callable[[], object]:
    def batched(tensor: Tensor) -> Tensor:
        return tensor.unflatten(0, (i.point.sequences, -1))

    return lambda: scan(
        batched(i.x), batched(i.dt), i.A, batched(i.B), batched(i.C), CHUNK, D=i.D, dt_bias=i.dt_bias,
        initial_states=i.states, dt_softplus=True, return_final_states=True,
    )  # fmt: skip


class _ConvolutionPrograms:
    """What vLLM's convolution reads of its metadata object."""

    def __init__(self, vllm: dict[str, Any], boundaries: Tensor) -> None:
        found = vllm["compute_causal_conv1d_metadata"](boundaries, device=torch.device("cuda"))
        self.nums_dict, self.batch_ptr, self.token_chunk_offset_ptr = found


def vllm_convolution(vllm: dict[str, Any], i: Inputs) -> Callable[[], object]:
    boundaries = torch.tensor(i.boundaries, dtype=torch.int32)
    programs, pool = _ConvolutionPrograms(vllm, boundaries), torch.cat([i.history[:1], i.history])
    # Slot 0 is vLLM's null block.
    slots = torch.arange(1, i.point.sequences + 1, dtype=torch.int32, device="cuda")
    known, on_device = torch.ones_like(slots, dtype=torch.bool), boundaries.cuda()
    return lambda: vllm["causal_conv1d_fn"](
        i.packed.T, i.weight, i.bias, pool, on_device, cache_indices=slots, has_initial_state=known, activation="silu",
        metadata=programs,
    )  # fmt: skip


def vllm_norm(vllm: dict[str, Any], i: Inputs) -> Callable[[], object]:
    flat = i.out.view_as(i.z)
    return lambda: vllm["rms_norm_gated"](flat, i.norm_weight, None, z=i.z, eps=1e-5, norm_before_gate=False)


def state_row(batch: int, dtype: torch.dtype, vllm: dict[str, Any] | None, bandwidth: float) -> Row:
    """The decode step of h-tiny, slots in random order."""
    heads = 48
    state = torch.randn(batch + 1, heads, HEADDIM, STATE, device="cuda").to(dtype)
    x, B, C = _normal(batch, heads, HEADDIM), _normal(batch, 1, STATE), _normal(batch, 1, STATE)
    dt, A, D = _normal(batch, heads), -torch.rand(heads, device="cuda"), torch.randn(heads, device="cuda")
    slots, out = torch.randperm(batch, device="cuda").int() + 1, torch.empty_like(x)
    wide = {
        "dt": dt[:, :, None].expand(batch, heads, HEADDIM),
        "A": A[:, None, None].expand(heads, HEADDIM, STATE),
        "D": D[:, None].expand(heads, HEADDIM),
    }
    peers: Peers = {}
    if vllm:
        peers["vllm"] = lambda: vllm["selective_state_update"](
            state,
            x,
            wide["dt"],
            wide["A"],
            B,
            C,
            wide["D"],
            wide["D"],
            dt_softplus=True,
            state_batch_indices=slots,
            out=out,
        )
    moved = 2 * batch * state[0].numel() * state.element_size()

    def ours() -> object:
        return m2.selective_state_update(
            state, x, dt, A, B, C, D=D, dt_bias=D, dt_softplus=True, state_indices=slots, out=out, backend="triton"
        )

    return _row(
        "update", f"h-tiny batch {batch}, {str(dtype).removeprefix('torch.')} state", ours, moved / bandwidth, peers
    )


def metadata_row(vllm: dict[str, Any] | None) -> Row:
    """512 sequences; wall time of the host, with boundaries on the host as an engine has them."""
    lengths = [(one * 37) % 200 + 20 for one in range(512)]
    boundaries = torch.tensor([0, *lengths], dtype=torch.int32).cumsum(0, dtype=torch.int32)
    ours = _host_ms(lambda: m2.build_metadata(boundaries, chunk_size=CHUNK, device="cuda"))
    peers = {}
    if vllm:
        theirs = _host_ms(
            lambda: (
                vllm["compute_varlen_chunk_metadata"](boundaries, CHUNK),
                vllm["compute_causal_conv1d_metadata"](boundaries, device=torch.device("cuda")),
            )
        )
        peers["vllm"] = (theirs, theirs)
    return Row("metadata", "512 sequences, host time", ours, ours, None, peers)


def summary(measured: list[Row]) -> Iterator[str]:
    """The geometric mean of the scan's ratios, and of the whole step's."""
    for part in ("scan", "step"):
        for peer in ("vllm", "mamba"):
            ratios = [ratio for row in measured if row.part == part and (ratio := row.ratio(peer)) is not None]
            if ratios:
                mean, least = statistics.geometric_mean(ratios), min(ratios)
                yield f"{part} against {peer}, from Python: {mean:.2f} in the geometric mean, {least:.2f} at least"


def _row(part: str, point: str, call: Callable[[], object], floor_s: float, peers: Peers) -> Row:
    eager_ms, graph_ms = both(call)
    return Row(part, point, eager_ms, graph_ms, floor_s * 1e3, {name: both(peer) for name, peer in peers.items()})


def _all(calls: Peers) -> Callable[[], object]:
    return lambda: [call() for call in (calls["conv"], calls["scan"], calls["norm"])]


def _together(peers: dict[str, Peers]) -> Peers:
    names = set.intersection(*(set(one) for one in peers.values()))
    return {name: _all({part: calls[name] for part, calls in peers.items()}) for name in names}


def _host_ms(call: Callable[[], object], repeats: int = 50) -> float:
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        started = time.perf_counter()
        call()
        times.append((time.perf_counter() - started) * 1e3)
    return statistics.median(times)


def _megabytes(sizes: dict[str, int]) -> str:
    return ", ".join(f"{name} {size / 1e6:.0f}" for name, size in sizes.items())


def _normal(*shape: int) -> Tensor:
    return torch.randn(shape, device="cuda").to(BF16)
