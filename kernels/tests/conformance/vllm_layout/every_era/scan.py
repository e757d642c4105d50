"""The scan behind every era's entry: this project's own operators, told of the sequences by the era's index tensors."""

import mamba2_varlen
import torch

from .ssd_chunk_scan import _chunk_scan_fwd


def scan(x, dt, A, B, C, chunk_size, lens, out, *, initial_states, state_dtype=None, **options):
    """Writes `out` (T,H,P) and returns the states (sequences,H,P,N)."""
    ends = torch.tensor([0, *lens]).cumsum(0).tolist()
    metadata = mamba2_varlen.build_metadata(ends, chunk_size=chunk_size)
    calls = [
        mamba2_varlen.ssd_prefill(
            x,
            dt,
            A,
            B,
            C,
            metadata=metadata,
            initial_states=states,
            state_dtype=state_dtype,
            backend="torch",
            **options,
        )
        for states in (initial_states, None)
    ]
    _chunk_scan_fwd(calls[0].out.contiguous(), calls[1].out.contiguous(), out, chunk_size)
    return calls[0].final_states


def lens_of(sequences, count):
    """Tokens of each of `count` sequences, from the sequence of each token."""
    return torch.bincount(sequences.long(), minlength=count).tolist()


def check_logical_chunks(lens, chunk_size, indices, offsets):
    """Every logical chunk starts where a chunk or a sequence does, each such place once."""
    starts = (indices * chunk_size + offsets).tolist()
    ends = torch.tensor([0, *lens]).cumsum(0).tolist()
    wanted = sorted({*range(0, ends[-1], chunk_size), *ends[:-1]} - {ends[-1]})
    if starts != wanted:
        raise ValueError(f"logical chunks start at {starts}, expected {wanted}")
