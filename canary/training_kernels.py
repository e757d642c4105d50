"""The canary's Mamba2 and expert layers in plain, compilable torch, for training and for the experiments of evaluate.py.

Not the kernels under test: those live in kernels/. `install_for_training` puts these in the place of transformers' functions.
"""

import torch
from torch import Tensor
from torch.nn import functional
from transformers.models.granitemoehybrid import modeling_granitemoehybrid as modeling

CHUNK = 64
ROW_TILE = 16
"""Rows a tile of the planted experiment in `chunk_scan`."""


def chunk_scan(x: Tensor, dt: Tensor, A: Tensor, B: Tensor, C: Tensor, initial: Tensor | None = None, *,
               late_decay: bool = False) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Mamba2's scan in its chunked matrix form (Dao and Gu 2024, section 6), one group.

    x (b,l,h,p), dt (b,l,h) after softplus, A (h), B and C (b,l,n), l a multiple of 64; initial (b,h,p,n).
    Returns y (b,l,h,p) and the final state (b,h,p,n), both float32.
    `late_decay` is the experiment: the initial state's decay starts at the row tile instead of the sequence's start.
    """
    b, length, h, p = x.shape
    c = length // CHUNK
    x_dt = (x * dt[..., None]).view(b, c, CHUNK, h, p)
    B, C = B.view(b, c, CHUNK, -1), C.view(b, c, CHUNK, -1)
    cum = (dt * A).float().view(b, c, CHUNK, h).cumsum(2)
    causal = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=x.device).tril()
    by_head = cum.permute(0, 1, 3, 2)
    decay = (by_head[..., :, None] - by_head[..., None, :]).masked_fill(~causal, float("-inf")).exp()
    scores = (C @ B.transpose(-1, -2))[:, :, None] * decay.to(C.dtype)
    values = x_dt.permute(0, 1, 3, 2, 4)
    inside = scores @ values.to(scores.dtype)
    to_end = (by_head[..., -1:] - by_head).exp()
    states = (values.to(B.dtype) * to_end[..., None].to(B.dtype)).transpose(-1, -2) @ B[:, :, None]
    carried, final = _pass_states(states.float(), cum[:, :, -1].exp(), initial)
    read = C[:, :, None] @ carried.to(C.dtype).transpose(-1, -2)
    outer = by_head
    if late_decay and initial is not None:
        start = outer[:, :1, :, ROW_TILE - 1 :: ROW_TILE].roll(1, -1).clone()
        start[..., 0] = 0
        outer = torch.cat([outer[:, :1] - start.repeat_interleave(ROW_TILE, -1), outer[:, 1:]], 1)
    y = inside.float() + read.float() * outer.exp()[..., None]
    return y.permute(0, 1, 3, 2, 4).reshape(b, length, h, p), final


def _pass_states(states: Tensor, decay: Tensor, initial: Tensor | None) -> tuple[Tensor, Tensor]:
    """The state before each chunk (b,c,h,p,n), and the one after the last."""
    state = torch.zeros_like(states[:, 0]) if initial is None else initial.float()
    before = []
    for index in range(states.shape[1]):
        before.append(state)
        state = state * decay[:, index, :, None, None] + states[:, index]
    return torch.stack(before, 1), state


def mixer(zxbcdt: Tensor, conv1d_weight: Tensor, conv1d_bias: Tensor, dt_bias: Tensor, A: Tensor, *, D: Tensor,
          rmsnorm_weight: Tensor, rmsnorm_eps: float, outproj_weight: Tensor, headdim: int, **_: object) -> Tensor:  # fmt: skip
    """One Mamba2 layer between its two projections' weights: (b,l,2*i+2*n+h) to (b,l,hidden)."""
    batch, length, _width = zxbcdt.shape
    heads = A.shape[0]
    inner = heads * headdim
    gate, xbc, dt = zxbcdt.split([inner, conv1d_weight.shape[0], heads], -1)
    width = conv1d_weight.shape[1]
    padded = functional.pad(xbc, (0, 0, width - 1, 0))
    mixed = conv1d_bias + sum(padded[:, k : k + length] * conv1d_weight[:, k] for k in range(width))
    state = (conv1d_weight.shape[0] - inner) // 2
    x, B, C = functional.silu(mixed).split([inner, state, state], -1)
    x = x.view(batch, length, heads, headdim)
    steps = functional.softplus(dt.float() + dt_bias.float())
    y, _final = chunk_scan(x, steps, A, B.to(torch.bfloat16), C.to(torch.bfloat16))
    y = (y + x.float() * D.float()[:, None]).reshape(batch, length, inner)
    y = y * functional.silu(gate.float())
    y = y * torch.rsqrt(y.pow(2).mean(-1, keepdim=True) + rmsnorm_eps)
    return functional.linear((rmsnorm_weight * y).to(gate.dtype), outproj_weight.to(gate.dtype))


def dense_experts(self: modeling.GraniteMoeHybridExperts, hidden: Tensor, top_k_index: Tensor, top_k_weights: Tensor) -> Tensor:
    """All experts on all tokens, weighted by the router's choice: twice the arithmetic, no gathering."""
    weights = torch.zeros(hidden.shape[0], self.num_experts, dtype=hidden.dtype, device=hidden.device)
    weights = weights.scatter(1, top_k_index, top_k_weights.to(hidden.dtype))
    gate, up = torch.einsum("td,efd->tef", hidden, self.gate_up_proj.to(hidden.dtype)).chunk(2, -1)
    inner = functional.silu(gate) * up * weights[..., None]
    return torch.einsum("tef,edf->td", inner, self.down_proj.to(hidden.dtype))


def install_for_training() -> None:
    """Replace transformers' Mamba2 and expert functions for this process."""
    modeling.mamba2_split_conv1d_scan_combined = mixer
    modeling.GraniteMoeHybridExperts.forward = dense_experts
