"""The entry of vLLM PR 21467: packed sequences only, chunks cut by the buffer."""

from .scan import check_logical_chunks, lens_of, scan


def mamba_chunk_scan_combined_varlen(
    x,
    dt,
    A,
    B,
    C,
    chunk_size,
    cu_seqlens,
    seq_idx,
    out,
    D=None,
    z=None,
    dt_bias=None,
    initial_states=None,
    chunk_indices=None,
    chunk_offsets=None,
    dt_softplus=False,
    dt_limit=(0.0, float("inf")),
    state_dtype=None,
):
    assert seq_idx.shape == (x.shape[0],)
    lens = lens_of(seq_idx, len(cu_seqlens) - 1)
    if initial_states is not None:
        check_logical_chunks(lens, chunk_size, chunk_indices, chunk_offsets)
    return scan(
        x, dt, A, B, C, chunk_size, lens, out,
        D=D, z=z, dt_bias=dt_bias, initial_states=initial_states, dt_softplus=dt_softplus, dt_limit=dt_limit,
        state_dtype=state_dtype,
    )  # fmt: skip
