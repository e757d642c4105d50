"""What each operator takes, as one checked value per call. Backends rely on these checks and repeat none of them.

Every refusal names the argument and both the value seen and the value wanted, and happens before anything is launched.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from .metadata import VarlenMetadata

CONV_WIDTHS = (2, 3, 4)
ACTIVATIONS = (None, "silu", "swish")
FLOAT_DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16)


@dataclass(frozen=True, kw_only=True)
class StepSize:
    """How dt becomes the step size: bias, softplus (linear above 20, as in vLLM), then clamp to the limits."""

    bias: Tensor | None
    softplus: bool
    limit: tuple[float, float]


@dataclass(frozen=True, kw_only=True)
class SsdArguments:
    """Checked arguments of `ssd_prefill`; `out` is always allocated."""

    x: Tensor
    dt: Tensor
    A: Tensor
    B: Tensor
    C: Tensor
    D: Tensor | None
    z: Tensor | None
    step: StepSize
    metadata: VarlenMetadata
    initial_states: Tensor | None
    state_dtype: torch.dtype
    out: Tensor
    return_intermediate_states: bool

    def __post_init__(self) -> None:
        (tokens, heads, headdim), (_, _, state) = _dims("x", self.x, 3), _dims("B", self.B, 3)
        _check_tokens(tokens, self.metadata, self.x.device)
        expect_scan_inputs(self, (tokens,))
        expect("initial_states", self.initial_states, (self.metadata.sequences, heads, headdim, state), self.x.device)
        expect("out", self.out, (tokens, heads, headdim), self.x.device, dtype=self.x.dtype)
        if self.state_dtype not in FLOAT_DTYPES:
            raise TypeError(f"state_dtype must be a floating dtype, got {self.state_dtype}")


@dataclass(frozen=True, kw_only=True)
class ConvArguments:
    """Checked arguments of `causal_conv1d_prefill`; `out` is always allocated."""

    x: Tensor
    weight: Tensor
    bias: Tensor | None
    metadata: VarlenMetadata
    initial_states: Tensor | None
    activation: str | None
    out: Tensor

    def __post_init__(self) -> None:
        tokens, channels = _dims("x", self.x, 2)
        width = _check_conv(self, channels)
        _check_tokens(tokens, self.metadata, self.x.device)
        if tokens > 1 and channels > 1 and 1 not in self.x.stride():
            raise ValueError(f"x must have stride 1 in one dimension, got strides {self.x.stride()}")
        states = (self.metadata.sequences, channels, width - 1)
        expect("initial_states", self.initial_states, states, self.x.device)
        expect("out", self.out, (tokens, channels), self.x.device, dtype=self.x.dtype)


@dataclass(frozen=True, kw_only=True)
class ConvUpdateArguments:
    """Checked arguments of `causal_conv1d_update`."""

    x: Tensor
    conv_state: Tensor
    weight: Tensor
    bias: Tensor | None
    activation: str | None
    state_indices: Tensor | None

    def __post_init__(self) -> None:
        rows, channels = _dims("x", self.x, 2)
        width = _check_conv(self, channels)
        slots = _dims("conv_state", self.conv_state, 3)[0]
        expect("conv_state", self.conv_state, (slots, channels, width - 1), self.x.device)
        _check_indices(self.state_indices, rows, slots, self.x.device)


@dataclass(frozen=True, kw_only=True)
class SsuArguments:
    """Checked arguments of `selective_state_update`; `out` is always allocated."""

    state: Tensor
    x: Tensor
    dt: Tensor
    A: Tensor
    B: Tensor
    C: Tensor
    D: Tensor | None
    z: Tensor | None
    step: StepSize
    state_indices: Tensor | None
    out: Tensor

    def __post_init__(self) -> None:
        rows, heads, headdim = _dims("x", self.x, 3)
        expect_scan_inputs(self, (rows,))
        slots = _dims("state", self.state, 4)[0]
        expect("state", self.state, (slots, heads, headdim, self.B.shape[2]), self.x.device)
        expect("out", self.out, (rows, heads, headdim), self.x.device, dtype=self.x.dtype)
        _check_indices(self.state_indices, rows, slots, self.x.device)


@dataclass(frozen=True, kw_only=True)
class NormArguments:
    """Checked arguments of `rms_norm_gated`; `group_size` is always set."""

    x: Tensor
    weight: Tensor
    z: Tensor | None
    eps: float
    group_size: int
    norm_before_gate: bool

    def __post_init__(self) -> None:
        _check_float("x", self.x)
        if self.x.dim() < 1:
            raise ValueError("x must have at least one dimension, got a scalar")
        hidden = self.x.shape[-1]
        expect("weight", self.weight, (hidden,), self.x.device)
        expect("z", self.z, tuple(self.x.shape), self.x.device)
        if self.group_size < 1 or hidden % self.group_size:
            raise ValueError(f"group_size must divide the hidden size {hidden}, got {self.group_size}")


def expect(
    name: str,
    tensor: Tensor | None,
    shape: tuple[int, ...],
    device: torch.device,
    *,
    dtype: torch.dtype | None = None,
) -> None:
    """Refuse an optional tensor whose shape, device or dtype is not the one wanted; None passes.

    Raises ValueError for shape and device, TypeError for the dtype.
    """
    if tensor is None:
        return
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name} must be a tensor, got {type(tensor).__name__}")
    if tensor.shape != shape:
        raise ValueError(f"{name} must have shape {shape}, got {tuple(tensor.shape)}")
    if tensor.device != device:
        raise ValueError(f"{name} must be on {device} like x, got {tensor.device}")
    if dtype is not None and tensor.dtype != dtype:
        raise TypeError(f"{name} must be {dtype}, got {tensor.dtype}")
    _check_float(name, tensor)


def expect_scan_inputs(arguments: SsdArguments | SsuArguments, leading: tuple[int]) -> None:
    """Check what prefill scan and decode step have in common: x, dt, A, B, C, D, z and the step size."""
    x = arguments.x
    _check_float("x", x)
    _, heads, headdim = x.shape
    groups, state = _dims("B", arguments.B, 3)[1:]
    if groups < 1 or heads % groups:
        raise ValueError(f"x's heads must be a multiple of B's groups, got {heads} heads and {groups} groups")
    expect("dt", arguments.dt, (*leading, heads), x.device)
    expect("A", arguments.A, (heads,), x.device)
    expect("B", arguments.B, (*leading, groups, state), x.device)
    expect("C", arguments.C, (*leading, groups, state), x.device)
    d_shape = (heads, headdim) if arguments.D is not None and arguments.D.dim() == 2 else (heads,)
    expect("D", arguments.D, d_shape, x.device)
    expect("z", arguments.z, tuple(x.shape), x.device)
    expect("dt_bias", arguments.step.bias, (heads,), x.device)
    low, high = arguments.step.limit
    if not low <= high:
        raise ValueError(f"dt_limit must be (low, high) with low <= high, got {arguments.step.limit}")


def _dims(name: str, tensor: Tensor, count: int) -> tuple[int, ...]:
    if tensor.dim() != count:
        raise ValueError(f"{name} must have {count} dimensions, got shape {tuple(tensor.shape)}")
    return tuple(tensor.shape)


def _check_float(name: str, tensor: Tensor) -> None:
    if tensor.dtype not in FLOAT_DTYPES:
        raise TypeError(f"{name} must be float64, float32, float16 or bfloat16, got {tensor.dtype}")


def _check_tokens(tokens: int, metadata: VarlenMetadata, device: torch.device) -> None:
    if metadata.tokens != tokens:
        raise ValueError(f"cu_seqlens of the metadata ends at {metadata.tokens}, but x has {tokens} tokens")
    # A kernel that reads boundaries from another device's address crashes the process.
    if metadata.device != device:
        raise ValueError(f"metadata must be on {device} like x, got {metadata.device}; give build_metadata the device")


def _check_conv(arguments: ConvArguments | ConvUpdateArguments, channels: int) -> int:
    device = arguments.x.device
    _check_float("x", arguments.x)
    width = _dims("weight", arguments.weight, 2)[1]
    if width not in CONV_WIDTHS:
        raise ValueError(f"weight's width must be one of {CONV_WIDTHS}, got {width}")
    expect("weight", arguments.weight, (channels, width), device)
    expect("bias", arguments.bias, (channels,), device)
    if arguments.activation not in ACTIVATIONS:
        raise ValueError(f"activation must be one of {ACTIVATIONS}, got {arguments.activation!r}")
    return width


def _check_indices(indices: Tensor | None, rows: int, slots: int, device: torch.device) -> None:
    if indices is None:
        if rows != slots:
            raise ValueError(f"state_indices is needed when x has {rows} rows and the state {slots} slots")
        return
    if tuple(indices.shape) != (rows,):
        raise ValueError(f"state_indices must have shape {(rows,)}, got {tuple(indices.shape)}")
    if indices.dtype not in (torch.int32, torch.int64):
        raise TypeError(f"state_indices must be int32 or int64, got {indices.dtype}")
    if indices.device != device:
        raise ValueError(f"state_indices must be on {device} like x, got {indices.device}")
    # On a GPU this look would stall the stream at every decode step; the kernels skip rows out of range instead.
    if device.type == "cpu" and rows and int(indices.max()) >= slots:
        raise ValueError(f"state_indices must be below the state's {slots} slots, got {int(indices.max())}")
