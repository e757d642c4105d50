"""One call of each operator in granite-4.0-tiny's shapes, bf16 with float32 states, on small CPU tensors. For
recording only."""

import math
from collections.abc import Callable
from types import MappingProxyType

import torch
from torch import Tensor

from ..arguments import ConvArguments, ConvUpdateArguments, NormArguments, SsdArguments, SsuArguments, StepSize
from ..metadata import VarlenMetadata, build_metadata
from . import conv, norm, ssd, ssu

HEADS, HEADDIM, GROUPS, STATE, CHUNK, WIDTH = 48, 64, 1, 128, 256, 4
CHANNELS = HEADS * HEADDIM + 2 * GROUPS * STATE
TOKENS, DECODE_ROWS = 2 * CHUNK, 4


def scan() -> None:
    """SSD prefill with every option a model uses: D, z, bias, softplus, initial and intermediate states."""
    x = _bf16(TOKENS, HEADS, HEADDIM)
    ssd.ssd_prefill(
        SsdArguments(
            x=x,
            dt=_bf16(TOKENS, HEADS),
            A=torch.zeros(HEADS),
            B=_bf16(TOKENS, GROUPS, STATE),
            C=_bf16(TOKENS, GROUPS, STATE),
            D=torch.zeros(HEADS),
            z=torch.zeros_like(x),
            step=_step(),
            metadata=_metadata(),
            initial_states=torch.zeros(1, HEADS, HEADDIM, STATE),
            state_dtype=torch.float32,
            out=torch.empty_like(x),
            return_intermediate_states=True,
        )
    )


def conv_prefill() -> None:
    """Convolution of a prompt with history."""
    x = _bf16(TOKENS, CHANNELS)
    conv.causal_conv1d_prefill(
        ConvArguments(
            x=x,
            weight=_bf16(CHANNELS, WIDTH),
            bias=_bf16(CHANNELS),
            metadata=_metadata(),
            initial_states=_bf16(1, CHANNELS, WIDTH - 1),
            activation="silu",
            out=torch.empty_like(x),
        )
    )


def conv_update() -> None:
    """Convolution of one token a row, slots by index."""
    conv.causal_conv1d_update(
        ConvUpdateArguments(
            x=_bf16(DECODE_ROWS, CHANNELS),
            conv_state=_bf16(DECODE_ROWS, CHANNELS, WIDTH - 1),
            weight=_bf16(CHANNELS, WIDTH),
            bias=_bf16(CHANNELS),
            activation="silu",
            state_indices=_slots(),
        )
    )


def decode() -> None:
    """Scan of one token a row, slots by index."""
    x = _bf16(DECODE_ROWS, HEADS, HEADDIM)
    ssu.selective_state_update(
        SsuArguments(
            state=torch.zeros(DECODE_ROWS, HEADS, HEADDIM, STATE),
            x=x,
            dt=_bf16(DECODE_ROWS, HEADS),
            A=torch.zeros(HEADS),
            B=_bf16(DECODE_ROWS, GROUPS, STATE),
            C=_bf16(DECODE_ROWS, GROUPS, STATE),
            D=torch.zeros(HEADS),
            z=torch.zeros_like(x),
            step=_step(),
            state_indices=_slots(),
            out=torch.empty_like(x),
        )
    )


def gated_norm() -> None:
    """Norm over all inner channels, gate first."""
    hidden = HEADS * HEADDIM
    x = _bf16(TOKENS, hidden)
    norm.rms_norm_gated(
        NormArguments(
            x=x, weight=_bf16(hidden), z=torch.zeros_like(x), eps=1e-5, group_size=hidden, norm_before_gate=False
        )
    )


# The call that launches each kernel, by the kernel's name in tiles.CANDIDATES.
SAMPLE_CALLS: MappingProxyType[str, Callable[[], None]] = MappingProxyType(
    {
        "ssd_walk": scan,
        "ssd_piece": scan,
        "ssd_cumsum": scan,
        "ssd_chunk_state": scan,
        "ssd_state_passing": scan,
        "ssd_bmm": scan,
        "ssd_chunk_scan": scan,
        "conv_prefill": conv_prefill,
        "conv_update": conv_update,
        "ssu": decode,
        "norm": gated_norm,
    }
)


def _bf16(*shape: int) -> Tensor:
    return torch.zeros(shape, dtype=torch.bfloat16)


def _step() -> StepSize:
    return StepSize(bias=torch.zeros(HEADS), softplus=True, limit=(0.0, math.inf))


def _metadata() -> VarlenMetadata:
    return build_metadata([0, TOKENS], chunk_size=CHUNK)


def _slots() -> Tensor:
    return torch.arange(DECODE_ROWS, dtype=torch.int32)
