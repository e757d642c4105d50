"""What makes a child's start shorter: torch, transformers, lm-eval and vLLM are seconds of imports."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def heavy_imports() -> Iterator[None]:
    """Import inside, and no garbage is collected meanwhile; what is there at the end is left out of later collections too.

    Modules stay, so every collection looks through all that was imported so far and frees next to nothing.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


@contextmanager
def absent(package: str) -> Iterator[None]:
    """Import inside as if `package` were not installed: for one that others import wherever it is, to be ready for what is
    not done here. Afterwards it can be imported as ever. Without effect once it is imported."""
    if package in sys.modules:
        yield
        return
    sys.modules[package] = None  # type: ignore[assignment]  # the import system's own word for it
    try:
        yield
    finally:
        del sys.modules[package]
