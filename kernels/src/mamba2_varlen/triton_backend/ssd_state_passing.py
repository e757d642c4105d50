"""Stage 3: the recurrence over chunks, one sequence a program row."""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ..arguments import SsdArguments
from .launch import cdiv, launch


@triton.jit
def _state_passing_kernel(
    states_ptr, initial_ptr, decay_ptr, first_ptr, last_ptr, final_ptr, intermediate_ptr,
    heads, elements,
    CHUNK: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    sequence = tl.program_id(0).to(tl.int64)
    head = tl.program_id(2).to(tl.int64)
    element = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = element < elements
    own = (sequence * heads + head) * elements + element
    state = tl.zeros([BLOCK], dtype=tl.float32)
    if initial_ptr is not None:
        state = tl.load(initial_ptr + own, mask=inside, other=0.0).to(tl.float32)
    first = tl.load(first_ptr + sequence).to(tl.int64)
    last = tl.load(last_ptr + sequence).to(tl.int64)
    for chunk in range(first, last + 1):
        row = chunk * heads + head
        place = row * elements + element
        # Rows past the chunk's end repeat the last decay, so the chunk's total always stands in the last row.
        total = tl.load(decay_ptr + row * CHUNK + CHUNK - 1)
        added = tl.load(states_ptr + place, mask=inside, other=0.0)
        tl.store(states_ptr + place, state, mask=inside)
        state = state * tl.exp(total) + added
        if intermediate_ptr is not None:
            tl.store(intermediate_ptr + place, state.to(intermediate_ptr.dtype.element_ty), mask=inside)
    tl.store(final_ptr + own, state.to(final_ptr.dtype.element_ty), mask=inside)


def pass_states(arguments: SsdArguments, states: Tensor, decay: Tensor) -> tuple[Tensor, Tensor | None]:
    """Turn each chunk's own contribution into the state entering it, in place.

    Returns final states (b, H, P, N) and, if asked for, the states after each chunk (nchunks, H, P, N), in the state
    dtype. The recurrence itself stays in float32.
    """
    metadata, initial = arguments.metadata, arguments.initial_states
    heads, headdim, size = states.shape[1:]
    shape = (metadata.sequences, heads, headdim, size)
    final = torch.empty(shape, dtype=arguments.state_dtype, device=states.device)
    intermediate = (
        torch.empty_like(states, dtype=arguments.state_dtype) if arguments.return_intermediate_states else None
    )
    launch(
        "ssd_state_passing",
        _state_passing_kernel,
        lambda blocks: (metadata.sequences, cdiv(headdim * size, blocks["BLOCK"]), heads),
        states_ptr=states, initial_ptr=None if initial is None else initial.contiguous(), decay_ptr=decay,
        first_ptr=metadata.first_chunk_of_sequence, last_ptr=metadata.last_chunk_of_sequence,
        final_ptr=final, intermediate_ptr=intermediate,
        heads=heads, elements=headdim * size, CHUNK=metadata.chunk_size,
    )  # fmt: skip
    return final, intermediate
