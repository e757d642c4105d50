"""The decode step with vLLM's signature: expanded inputs, states in slots."""

import mamba2_varlen
from vllm.attention.backends.utils import PAD_SLOT_ID


def selective_state_update(
    state,
    x,
    dt,
    A,
    B,
    C,
    D=None,
    z=None,
    dt_bias=None,
    dt_softplus=False,
    state_batch_indices=None,
    pad_slot_id=PAD_SLOT_ID,
    out=None,
):
    assert A.stride(-1) == A.stride(-2) == dt.stride(-1) == dt_bias.stride(-1) == 0
    mamba2_varlen.selective_state_update(
        state, x, dt[..., 0], A[:, 0, 0], B, C,
        D=D, z=z, dt_bias=dt_bias[:, 0], dt_softplus=dt_softplus, state_indices=state_batch_indices,
        out=out, backend="torch",
    )  # fmt: skip
