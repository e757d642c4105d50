"""The right answers: float64, token by token, straight from the recurrence. Slow, obvious, and shared with nobody.

State-space duality (Dao and Gu 2024, arXiv 2405.21060, eq. 1 and 2) with the scalar decay of Mamba2:
    h_t = exp(dt_t A) h_(t-1) + dt_t B_t x_t        y_t = C_t h_t + D x_t        out_t = y_t silu(z_t)
Results are numpy arrays; nothing here is fast, chunked, or of a lower precision.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from mamba2_conformance.problem import Convolution, ConvolutionStep, GatedNorm, Scan, StateStep, spans

Array = NDArray[np.float64]

SOFTPLUS_LIMIT = 20.0
"""Kernels pass dt through above this; softplus(20) - 20 is 2e-9, so that either side of it is right."""


@dataclass(frozen=True, eq=False)
class Scanned:
    """out (T,H,P), the state after each sequence (sequences,H,P,N), and after each token asked for (tokens,H,P,N)."""

    out: Array
    final_states: Array
    states_after: Array


def scan(problem: Scan, after: Sequence[int] = ()) -> Scanned:
    """SSD of a packed batch. `after` counts its tokens: 5 asks for the state when token 4 has gone in."""
    x, A = exact(problem.x), exact(problem.A)
    dt = time_steps(exact(problem.dt), problem)
    B, C = per_head(exact(problem.B), x.shape[1]), per_head(exact(problem.C), x.shape[1])
    decay, inflow = np.exp(dt * A), x * dt[..., None]
    out, finals, kept = np.empty_like(x), [], {}
    for sequence, (start, end) in enumerate(spans(problem.lens)):
        state = _first_state(problem, sequence, (*x.shape[1:], B.shape[2]))
        for token in range(start, end):
            state = state * decay[token][:, None, None] + inflow[token][:, :, None] * B[token][:, None, :]
            out[token] = np.einsum("hpn,hn->hp", state, C[token])
            if token + 1 in after:
                kept[token + 1] = state
        finals.append(state)
    states_after = np.stack([kept[token] for token in after]) if after else np.empty((0, *x.shape[1:], B.shape[2]))
    return Scanned(gated(with_skip(out, x, problem.D), problem.z), np.stack(finals), states_after)


def convolution(problem: Convolution) -> tuple[Array, Array]:
    """out (T,channels) and the last width-1 inputs of each sequence (sequences,channels,width-1), oldest first."""
    x, weight = exact(problem.x), exact(problem.weight)
    width = weight.shape[1]
    out, finals = np.empty_like(x), []
    for sequence, (start, end) in enumerate(spans(problem.lens)):
        past: Array = np.zeros((x.shape[1], width - 1))
        if problem.initial_states is not None:
            past = exact(problem.initial_states[sequence])
        seen = np.concatenate([past.T, x[start:end]])
        for token in range(start, end):
            out[token] = np.einsum("wc,cw->c", seen[token - start : token - start + width], weight)
        finals.append(seen[len(seen) - (width - 1) :].T)
    return activated(out + _bias(problem.bias), problem.activation), np.stack(finals)


def convolution_step(problem: ConvolutionStep) -> tuple[Array, Array]:
    """out (rows,channels) and the states after it (slots,channels,width-1). Padded rows give NaN."""
    x, weight, states = exact(problem.x), exact(problem.weight), exact(problem.state)
    out = np.zeros_like(x)
    for row, slot in enumerate(slots_of(problem.state_indices, len(x))):
        if slot >= 0:
            seen = np.concatenate([states[slot], x[row][:, None]], axis=1)
            out[row] = np.einsum("cw,cw->c", seen, weight)
            states[slot] = seen[:, 1:]
    return promised(activated(out + _bias(problem.bias), problem.activation), problem.state_indices), states


def state_step(problem: StateStep) -> tuple[Array, Array]:
    """out (rows,H,P) and the states after it (slots,H,P,N). Padded rows give NaN."""
    x, A, states = exact(problem.x), exact(problem.A), exact(problem.state)
    dt = time_steps(exact(problem.dt), problem)
    B, C = per_head(exact(problem.B), x.shape[1]), per_head(exact(problem.C), x.shape[1])
    out = np.zeros_like(x)
    for row, slot in enumerate(slots_of(problem.state_indices, len(x))):
        if slot >= 0:
            inflow = (x[row] * dt[row][:, None])[:, :, None] * B[row][:, None, :]
            states[slot] = states[slot] * np.exp(dt[row] * A)[:, None, None] + inflow
            out[row] = np.einsum("hpn,hn->hp", states[slot], C[row])
    return promised(gated(with_skip(out, x, problem.D), problem.z), problem.state_indices), states


def gated_norm(problem: GatedNorm) -> Array:
    """Zhang and Sennrich 2019 (arXiv 1910.07467), group by group; the gate goes in first unless told otherwise."""
    x, weight = exact(problem.x), exact(problem.weight)
    if not problem.norm_before_gate:
        x = gated(x, problem.z)
    grouped = x.reshape(len(x), -1, problem.group_size or x.shape[1])
    normed = grouped / np.sqrt(np.mean(grouped**2, axis=2, keepdims=True) + problem.eps)
    out = normed.reshape(x.shape) * weight
    return gated(out, problem.z) if problem.norm_before_gate else out


def time_steps(dt: Array, problem: Scan | StateStep) -> Array:
    """dt as the recurrence uses it: bias, softplus, then the limits."""
    if problem.dt_bias is not None:
        dt = dt + exact(problem.dt_bias)
    if problem.dt_softplus:
        dt = np.where(dt > SOFTPLUS_LIMIT, dt, np.log1p(np.exp(np.minimum(dt, SOFTPLUS_LIMIT))))
    return np.clip(dt, *problem.dt_limit)


def per_head(grouped: Array, heads: int) -> Array:
    """(T,G,N) repeated to (T,H,N): consecutive heads share a group."""
    return np.repeat(grouped, heads // grouped.shape[1], axis=1)


def with_skip(out: Array, x: Array, D: Tensor | None) -> Array:
    """D is (H) or (H,P)."""
    if D is None:
        return out
    skip = exact(D)
    return out + x * (skip[:, None] if skip.ndim == 1 else skip)


def gated(out: Array, z: Tensor | None) -> Array:
    return out if z is None else out * silu(exact(z))


def activated(out: Array, activation: str | None) -> Array:
    return out if activation is None else silu(out)


def silu(value: Array) -> Array:
    gate: Array = np.exp(-np.logaddexp(0.0, -value))  # the sigmoid, without overflow at either end
    return value * gate


def slots_of(state_indices: Tensor | None, rows: int) -> list[int]:
    return list(range(rows)) if state_indices is None else [int(slot) for slot in state_indices.cpu()]


def promised(out: Array, state_indices: Tensor | None) -> Array:
    """NaN in the rows of padding, where nothing is promised, so that nobody compares with them by mistake."""
    padding = [row for row, slot in enumerate(slots_of(state_indices, len(out))) if slot < 0]
    out[padding] = np.nan
    return out


def exact(tensor: Tensor) -> Array:
    """The tensor's very values in float64, in memory of its own."""
    return np.array(tensor.detach().double().cpu().numpy(), dtype=np.float64)


def _first_state(problem: Scan, sequence: int, shape: tuple[int, ...]) -> Array:
    return np.zeros(shape) if problem.initial_states is None else exact(problem.initial_states[sequence])


def _bias(bias: Tensor | None) -> Array | float:
    return 0.0 if bias is None else exact(bias)
