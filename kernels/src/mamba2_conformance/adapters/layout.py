"""Which adapter serves a layout."""

from pathlib import Path

from mamba2_conformance.adapters import varlen
from mamba2_conformance.adapters.protocol import Adapter, LoadError


def load_layout(layout: str, import_dir: Path) -> Adapter:
    """The kernels in `import_dir`. Raises LoadError, also for a layout without an adapter."""
    if layout == varlen.PACKAGE:
        return varlen.load(import_dir)
    message = f"there is no adapter for the layout {layout!r}; known: {varlen.PACKAGE}"
    raise LoadError(kind="unsupported", reason="unknown_layout", message=message)
