"""vLLM's two decode operators on the commit's kernels. Arguments come by name; everything here may run inside a CUDA graph,
so nothing looks at a value."""

from typing import Any

import torch
from torch import Tensor

from .kernel_calls import KernelCalls, UnservedError
from .signatures import CACHED_PREFIX, SPECULATION


class Decode:
    """`null_block` is the slot that vLLM keeps for rows that are none, where this release has one; else -1 marks them."""

    def __init__(self, calls: KernelCalls, null_block: int | None) -> None:
        self._calls = calls
        self._null_block = null_block

    def convolution(self, origin: str, given: dict[str, Any]) -> Tensor:
        """causal_conv1d_update: x (b, dim) or (b, dim, 1) in, the same out; conv_state (slots, dim, W-1) shifts in place."""
        _refuse("causal_conv1d_update", given)
        x, activation = given["x"], given.get("activation")
        if x.dim() == 3 and x.shape[2] != 1:
            raise UnservedError(f"causal_conv1d_update with {x.shape[2]} tokens a row: one is served")
        with self._calls.running("causal_conv1d_update", origin):
            made: Tensor = self._calls.kernels.causal_conv1d_update(
                x[..., 0] if x.dim() == 3 else x, given["conv_state"], given["weight"], given.get("bias"),
                activation=("silu" if activation else None) if isinstance(activation, bool) else activation,
                state_indices=self._slots("causal_conv1d_update", given.get("conv_state_indices")),
                backend=self._calls.backend,
            )  # fmt: skip
        made = made.view_as(x) if made.is_contiguous() else made.reshape(x.shape)
        out = given.get("out")
        return made if out is None else out.copy_(made)

    def state_update(self, origin: str, given: dict[str, Any]) -> Tensor:
        """selective_state_update: x (b, H, P), state (slots, H, P, N) in place. vLLM spreads dt, A, D and dt_bias over P and
        N for Mamba1's sake."""
        _refuse("selective_state_update", given)
        _refuse_rounding(given)
        source, target = given.get("state_batch_indices"), given.get("dst_state_batch_indices")
        if target is not None and target is not source:
            raise UnservedError(
                "selective_state_update into other slots than it reads: set enable_prefix_caching = false"
            )
        bias, skip = given.get("dt_bias"), given.get("D")
        with self._calls.running("selective_state_update", origin):
            out: Tensor = self._calls.kernels.selective_state_update(
                given["state"], given["x"], _per_head("dt", given["dt"], 1), _per_head("A", given["A"], 0), given["B"],
                given["C"], D=None if skip is None else _per_head("D", skip, 0), z=given.get("z"),
                dt_bias=None if bias is None else _per_head("dt_bias", bias, 0),
                dt_softplus=given.get("dt_softplus", False), state_indices=self._slots("selective_state_update", source),
                out=given.get("out"), backend=self._calls.backend,
            )  # fmt: skip
        return out

    def _slots(self, operator: str, indices: Tensor | None) -> Tensor | None:
        """(b) slots, -1 where a row is none."""
        if indices is None:
            return None
        if indices.dim() == 2:
            if indices.shape[1] != 1:
                raise UnservedError(
                    f"{operator} with {indices.shape[1]} slots a row: speculative decoding and cached prefixes are not served"
                )
            indices = indices[:, 0]
        if self._null_block is None:
            return indices.contiguous()
        return torch.where(indices == self._null_block, -1, indices)


def _refuse(operator: str, given: dict[str, Any]) -> None:
    if strange := sorted(name for name in CACHED_PREFIX | SPECULATION if given.get(name) is not None):
        raise UnservedError(
            f"{operator} with {', '.join(strange)}: speculative decoding and cached prefixes are not served"
        )


def _refuse_rounding(given: dict[str, Any]) -> None:
    if given.get("enable_stochastic_rounding"):
        raise UnservedError("selective_state_update with stochastic rounding of the state is not served")


def _per_head(name: str, value: Tensor, head_dim: int) -> Tensor:
    """One value a head of what vLLM spread over the dimensions behind `head_dim`."""
    behind = range(head_dim + 1, value.dim())
    if any(value.stride(dim) != 0 and value.shape[dim] != 1 for dim in behind):
        raise UnservedError(f"selective_state_update with {name} that differs within a head (Mamba1) is not served")
    for _ in behind:
        value = value[..., 0]
    return value
