"""The entry since vLLM PR 24683: chunks cut by sequences, and the state after each of them on request."""

import torch

from .scan import lens_of, scan


def mamba_chunk_scan_combined_varlen(
    x,
    dt,
    A,
    B,
    C,
    chunk_size,
    cu_seqlens,
    cu_chunk_seqlens,
    last_chunk_indices,
    seq_idx,
    out,
    D=None,
    z=None,
    dt_bias=None,
    initial_states=None,
    dt_softplus=False,
    dt_limit=(0.0, float("inf")),
    return_intermediate_states=False,
    state_dtype=None,
):
    chunks = cu_chunk_seqlens.diff()
    assert seq_idx.shape == chunks.shape
    assert (chunks <= chunk_size).all()
    lens = lens_of(torch.repeat_interleave(seq_idx, chunks), len(cu_seqlens) - 1)
    options = {
        "state_dtype": state_dtype,
        "D": D,
        "z": z,
        "dt_bias": dt_bias,
        "dt_softplus": dt_softplus,
        "dt_limit": dt_limit,
    }
    final = scan(x, dt, A, B, C, chunk_size, lens, out, initial_states=initial_states, **options)
    if not return_intermediate_states:
        return final
    states = []
    for chunk, sequence in enumerate(seq_idx.tolist()):
        first = int((seq_idx < sequence).sum())
        start, end = int(cu_chunk_seqlens[first]), int(cu_chunk_seqlens[chunk + 1])
        past = None if initial_states is None else initial_states[sequence : sequence + 1]
        part = [tensor[start:end] for tensor in (x, dt)], [tensor[start:end] for tensor in (B, C)]
        options["z"] = None if z is None else z[start:end]
        unused = torch.empty_like(part[0][0], memory_format=torch.contiguous_format)
        states.append(scan(*part[0], A, *part[1], chunk_size, [end - start], unused, initial_states=past, **options))
    return torch.cat(states)
