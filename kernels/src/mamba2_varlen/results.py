"""What the prefill operators return. Values only: no computing here."""

from typing import NamedTuple

from torch import Tensor


class SsdResult(NamedTuple):
    """Outcome of `ssd_prefill`.

    out (T, H, P) in x's dtype; final_states (b, H, P, N) in the state dtype; intermediate_states (nchunks, H, P, N),
    the state after each chunk of the metadata, or None when not asked for.
    """

    out: Tensor
    final_states: Tensor
    intermediate_states: Tensor | None


class ConvResult(NamedTuple):
    """Outcome of `causal_conv1d_prefill`: out (T, D), final_states (b, D, W-1) with the oldest input first."""

    out: Tensor
    final_states: Tensor
