"""vLLM's gated RMSNorm on the commit's kernels.

The layer around it is compiled as one graph, so the kernels stand behind an operator that torch does not look into.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from .kernel_calls import KernelCalls

NAMESPACE = "driftline"
SCHEMA = "gated_norm(Tensor x, Tensor weight, Tensor? z, float eps, int group_size, bool norm_before_gate) -> Tensor"

Forward = Callable[[Any, Tensor, Tensor], Tensor]


class GatedNorm:
    """Keeps torch's registration for as long as it lives."""

    def __init__(self, calls: KernelCalls, origin: str) -> None:
        self._calls = calls
        self._origin = origin
        self._library = torch.library.Library(NAMESPACE, "FRAGMENT")
        self._library.define(SCHEMA)
        self._library.impl("gated_norm", self._run, "CompositeExplicitAutograd")
        torch.library.register_fake(f"{NAMESPACE}::gated_norm", _shape_of, lib=self._library)

    def _run(self, x: Tensor, weight: Tensor, z: Tensor | None, eps: float, group_size: int, first: bool) -> Tensor:
        with self._calls.running("rms_norm_gated", self._origin):
            out: Tensor = self._calls.kernels.rms_norm_gated(
                x, weight, z=z, eps=eps, group_size=group_size, norm_before_gate=first, backend=self._calls.backend
            )
        return out.contiguous()

    def withdraw(self) -> None:
        """Take the operator back, so that another may be registered in this process."""
        self._library._destroy()

    def function(self, _origin: str, given: dict[str, Any]) -> Tensor:
        """rms_norm_gated: x (…, hidden); a bias is added last."""
        x, bias = given["x"], given.get("bias")
        out: Tensor = torch.ops.driftline.gated_norm(
            x, given["weight"], given.get("z"), given.get("eps", 1e-6), given.get("group_size") or x.shape[-1],
            given.get("norm_before_gate", True),
        )  # fmt: skip
        return out if bias is None else out + bias


def layer_forward(original: Forward) -> Forward:
    """A forward of vLLM's Mixer2RMSNormGated. Where a rank holds no whole groups, the sums cross ranks, and vLLM's own stays."""

    def forward(self: Any, x: Tensor, gate: Tensor) -> Tensor:
        if not self.use_rms_norm or self.n_groups % self.tp_size:
            return original(self, x, gate)
        out: Tensor = torch.ops.driftline.gated_norm(
            x, self.weight, gate, self.variance_epsilon, self.group_size, norm_before_gate=False
        )
        return out

    return forward


def _shape_of(
    x: Tensor, weight: Tensor, z: Tensor | None, eps: float, group_size: int, norm_before_gate: bool
) -> Tensor:
    return x.new_empty(x.shape)
