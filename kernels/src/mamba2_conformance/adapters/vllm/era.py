"""Which of vLLM's three generations of the SSD prefill a commit has: told by its signature, never by its date."""

import inspect
from collections.abc import Callable, Set
from types import ModuleType

from mamba2_conformance.adapters.parameters import parameters_of
from mamba2_conformance.adapters.protocol import LoadError

BATCH, VARLEN, CHUNK_ALIGNED = "batch", "varlen", "chunk_aligned"

ERAS: tuple[tuple[str, str, Set[str]], ...] = (
    (
        CHUNK_ALIGNED,
        "mamba_chunk_scan_combined_varlen",
        {"cu_seqlens", "cu_chunk_seqlens", "last_chunk_indices", "seq_idx", "out"},
    ),
    (VARLEN, "mamba_chunk_scan_combined_varlen", {"cu_seqlens", "seq_idx", "chunk_indices", "chunk_offsets", "out"}),
    (BATCH, "mamba_chunk_scan_combined", {"seq_idx", "cu_seqlens", "initial_states", "return_varlen_states"}),
)
"""Era -> its entry and the parameters that tell it: a batch dimension and states of packed sequences on request; then
(vLLM PR 21467) packed sequences only, chunks cut by the buffer; then (PR 24683) chunks cut by sequences."""


def entry_of(ssd_combined: ModuleType) -> tuple[str, Callable[..., object]]:
    """The era and its SSD prefill. Raises LoadError (`unknown_signature`) naming what there is."""
    for era, name, telling in ERAS:
        function = getattr(ssd_combined, name, None)
        if callable(function) and telling <= parameters_of(function):
            return era, function
    offered = {name for _, name, _ in ERAS if hasattr(ssd_combined, name)}
    found = "; ".join(f"{name}({', '.join(signature(ssd_combined, name))})" for name in sorted(offered)) or "neither"
    message = f"ssd_combined has no known signature of an SSD prefill; it has {found}"
    raise LoadError(kind="unsupported", reason="unknown_signature", message=message[:1500])


def signature(module: ModuleType, name: str) -> list[str]:
    return list(inspect.signature(getattr(module, name)).parameters)
