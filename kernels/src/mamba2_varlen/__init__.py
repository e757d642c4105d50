"""Mamba2 operators for packed sequences: SSD prefill, causal convolution, decode step and gated norm.

Nothing here has a batch dimension: sequences of any length lie behind each other, `build_metadata` says where each
begins, and one metadata object serves every layer of a forward pass. Importing this package never imports Triton.
"""

from .backends import available_backends
from .metadata import VarlenMetadata, build_metadata
from .operators import (
    causal_conv1d_prefill,
    causal_conv1d_update,
    rms_norm_gated,
    selective_state_update,
    ssd_prefill,
)
from .results import ConvResult, SsdResult

__all__ = [
    "ConvResult",
    "SsdResult",
    "VarlenMetadata",
    "available_backends",
    "build_metadata",
    "causal_conv1d_prefill",
    "causal_conv1d_update",
    "rms_norm_gated",
    "selective_state_update",
    "ssd_prefill",
]
