"""Which adapter serves a layout."""

import importlib
from pathlib import Path

from mamba2_conformance.adapters import varlen
from mamba2_conformance.adapters.protocol import Adapter, LoadError

LOADERS = {varlen.PACKAGE: "varlen", "vllm": "vllm.adapter", "mamba_ssm": "mamba_ssm.adapter"}
"""Layout -> the module here whose `load` takes the folder. Those of Triton-only layouts are imported when asked for:
our own layout runs without Triton."""


def load_layout(layout: str, import_dir: Path) -> Adapter:
    """The kernels in `import_dir`. Raises LoadError, also for a layout without an adapter."""
    if layout not in LOADERS:
        message = f"there is no adapter for the layout {layout!r}; known: {', '.join(LOADERS)}"
        raise LoadError(kind="unsupported", reason="unknown_layout", message=message)
    adapter: Adapter = importlib.import_module(f"{__package__}.{LOADERS[layout]}").load(import_dir)
    return adapter
