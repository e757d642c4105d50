"""The gated norm with vLLM's signature."""

import mamba2_varlen


def rms_norm_gated(x, weight, bias, z=None, eps=1e-6, group_size=None, norm_before_gate=True):
    assert bias is None
    return mamba2_varlen.rms_norm_gated(
        x, weight, z=z, eps=eps, group_size=group_size, norm_before_gate=norm_before_gate, backend="torch"
    )
