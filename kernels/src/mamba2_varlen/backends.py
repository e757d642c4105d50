"""Which backends there are and which one serves a call. Backend packages are imported on first use, never before."""

import importlib
import importlib.util
import os
from types import ModuleType

import torch

REFERENCE, TORCH, TRITON = "reference", "torch", "triton"
_PACKAGES = {REFERENCE: "reference", TORCH: "torch_backend", TRITON: "triton_backend"}


def available_backends() -> tuple[str, ...]:
    """Backends that can run in this process; `triton` needs the package, and a CUDA GPU or TRITON_INTERPRET=1."""
    return (REFERENCE, TORCH, TRITON) if _triton_runs() else (REFERENCE, TORCH)


def backend_module(backend: str, operator: str, device: torch.device) -> ModuleType:
    """The module that implements `operator` (ssd, conv, ssu, norm) for a backend name or "auto".

    Raises ValueError for an unknown backend, RuntimeError for Triton on a device where it cannot run.
    """
    name = _resolve(backend, device)
    if name == TRITON and device.type == "cpu" and not _interpreted():
        raise RuntimeError(
            "backend='triton' got CPU tensors; set TRITON_INTERPRET=1 before the first import, or use 'torch'"
        )
    return importlib.import_module(f".{_PACKAGES[name]}.{operator}", __package__)


def _resolve(backend: str, device: torch.device) -> str:
    if backend == "auto":
        return TRITON if device.type == "cuda" and _triton_installed() else TORCH
    if backend not in _PACKAGES:
        raise ValueError(f"backend must be one of auto, {', '.join(_PACKAGES)}; got {backend!r}")
    return backend


def _triton_runs() -> bool:
    return _triton_installed() and (torch.cuda.is_available() or _interpreted())


def _triton_installed() -> bool:
    return importlib.util.find_spec("triton") is not None


def _interpreted() -> bool:
    return os.environ.get("TRITON_INTERPRET") == "1"
