"""The entry before vLLM PR 21467: a batch dimension, and the states of packed sequences on request."""

from .scan import check_logical_chunks, lens_of, scan


def mamba_chunk_scan_combined(
    x,
    dt,
    A,
    B,
    C,
    chunk_size,
    D=None,
    z=None,
    dt_bias=None,
    initial_states=None,
    seq_idx=None,
    chunk_indices=None,
    chunk_offsets=None,
    cu_seqlens=None,
    dt_softplus=False,
    dt_limit=(0.0, float("inf")),
    out=None,
    return_final_states=False,
    return_varlen_states=False,
):
    batch, tokens, *_ = x.shape
    assert batch == 1
    assert seq_idx.shape == (1, tokens)
    assert return_varlen_states
    lens = lens_of(seq_idx[0], len(cu_seqlens) - 1)
    if initial_states is not None:
        check_logical_chunks(lens, chunk_size, chunk_indices, chunk_offsets)
    return scan(
        x[0], dt[0], A, B[0], C[0], chunk_size, lens, out[0],
        D=D, z=None if z is None else z[0], dt_bias=dt_bias, initial_states=initial_states,
        dt_softplus=dt_softplus, dt_limit=dt_limit,
    )  # fmt: skip
