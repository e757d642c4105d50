"""vLLM's two prefill operators on the commit's kernels, in each era's calling convention. Arguments come by name."""

from typing import Any

import torch
from torch import Tensor

from .kernel_calls import KernelCalls, UnservedError
from .signatures import CACHED_PREFIX
from .step_metadata import StepMetadata

UNKNOWN_CHUNK = 256
"""For a convolution whose caller tells no chunk size; no number depends on it."""

SCAN_OPTIONS = ("D", "z", "dt_bias", "dt_softplus", "initial_states", "state_dtype")


class Prefill:
    """`null_block` is the slot that vLLM keeps for rows that are none, where this release has one."""

    def __init__(self, calls: KernelCalls, metadata: StepMetadata, null_block: int | None) -> None:
        self._calls = calls
        self._metadata = metadata
        self._null_block = null_block

    def convolution(self, origin: str, given: dict[str, Any]) -> Tensor:
        """causal_conv1d_fn: x (dim, T) in, (dim, T) out; histories come from and go back to conv_states (slots, dim, W-1)."""
        if cached := sorted(name for name in CACHED_PREFIX if given.get(name) is not None):
            raise UnservedError(f"causal_conv1d_fn with {', '.join(cached)}: states at block boundaries are not kept; "
                                "set enable_prefix_caching = false")  # fmt: skip
        x, states, boundaries = given["x"], given["conv_states"], given["query_start_loc"]
        rows = boundaries.shape[0] - 1
        indices = given.get("cache_indices")
        slots = torch.arange(rows, device=x.device) if indices is None else indices[:rows].long()
        chunk_size = getattr(given.get("metadata"), "chunk_size", None) or UNKNOWN_CHUNK
        activation = given.get("activation", "silu")
        with self._calls.running("causal_conv1d_prefill", origin):
            result = self._calls.kernels.causal_conv1d_prefill(
                x.T, given["weight"], given["bias"], metadata=self._metadata.of(boundaries, chunk_size),
                initial_states=_entering(states, slots, given.get("has_initial_state"), x.dtype),
                activation=("silu" if activation else None) if isinstance(activation, bool) else activation,
                backend=self._calls.backend,
            )  # fmt: skip
        self._keep(states, slots, result.final_states)
        out: Tensor = result.out.T
        return out

    def _keep(self, states: Tensor, slots: Tensor, final: Tensor) -> None:
        """Where there is a null block, rows that are none may write to it, as vLLM's own layers do; picking the others out
        would wait for the device."""
        if self._null_block is None:
            live = slots >= 0
            slots, final = slots[live], final[live]
        states[slots] = final.to(states.dtype)

    def chunk_aligned_scan(self, origin: str, given: dict[str, Any]) -> Tensor:
        """mamba_chunk_scan_combined_varlen since #24683: writes `out`, returns the final states (b, H, P, N)."""
        if given.get("return_intermediate_states"):
            raise UnservedError(
                "mamba_chunk_scan_combined_varlen with return_intermediate_states: states at block boundaries are not kept; "
                "set enable_prefix_caching = false"
            )
        return self.varlen_scan(origin, given)

    def varlen_scan(self, origin: str, given: dict[str, Any]) -> Tensor:
        """mamba_chunk_scan_combined_varlen of #21467: the same, with another grid of chunks, which is ours to choose."""
        states: Tensor = self._scan(origin, given).final_states
        return states

    def batch_scan(self, origin: str, given: dict[str, Any], *, takes_out: bool) -> Any:
        """mamba_chunk_scan_combined, before #21467: a batch dimension of 1 around packed sequences."""
        if not given.get("return_varlen_states") or given.get("return_final_states") or given["x"].shape[0] != 1:
            raise UnservedError("mamba_chunk_scan_combined is served for packed sequences only (return_varlen_states)")
        packed = dict(given)
        for name in ("x", "dt", "B", "C", "z", "out"):
            packed[name] = None if given.get(name) is None else given[name][0]
        result = self._scan(origin, packed)
        return result.final_states if takes_out else (result.out[None], result.final_states)

    def _scan(self, origin: str, given: dict[str, Any]) -> Any:
        options = {name: given[name] for name in SCAN_OPTIONS if given.get(name) is not None}
        options.setdefault("state_dtype", given["C"].dtype)  # vLLM's own default
        with self._calls.running("ssd_prefill", origin):
            return self._calls.kernels.ssd_prefill(
                given["x"], given["dt"], given["A"], given["B"], given["C"],
                metadata=self._metadata.of(given["cu_seqlens"], given["chunk_size"]),
                dt_limit=tuple(given.get("dt_limit", (0.0, float("inf")))), out=given.get("out"),
                backend=self._calls.backend, **options,
            )  # fmt: skip


def _entering(states: Tensor, slots: Tensor, known: Tensor | None, dtype: torch.dtype) -> Tensor | None:
    """The inputs before each sequence (b, dim, W-1), zeros for a sequence that begins here. A slot of such a one may hold
    anything, NaN too, so it is not multiplied away."""
    if known is None:
        return None
    held = states[slots.clamp(min=0)].to(dtype)
    keep = (known[: slots.shape[0]] & (slots >= 0))[:, None, None]
    return torch.where(keep, held, torch.zeros((), dtype=dtype, device=held.device))
