"""Other projects' Mamba2 kernels, imported from their source files alone: vLLM's operators and state-spaces/mamba's.

Their packages import far more than the operators need, so the few names that the operator files ask for are put into
sys.modules first. Nothing of the files is changed: their own tuners and launch code run.
"""

import ast
import importlib
import importlib.util
import itertools
import logging
import sys
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

VLLM_OPS = "vllm.model_executor.layers.mamba.ops"


def vllm_operators(path: Path | None) -> dict[str, Any] | None:
    """vLLM's scan, convolution, state update, norm and metadata helpers by name; from a checkout at `path`, else from
    an installed vllm; None without either."""
    if path is not None:
        _stub_vllm(path.resolve())
    elif importlib.util.find_spec("vllm") is None:
        return None
    wanted = {
        "ssd_combined": ("mamba_chunk_scan_combined_varlen",),
        "causal_conv1d": ("causal_conv1d_fn", "causal_conv1d_update"),
        "mamba_ssm": ("selective_state_update",),
        "layernorm_gated": ("rms_norm_gated",),
    }
    found = {
        name: getattr(importlib.import_module(f"{VLLM_OPS}.{module}"), name)
        for module, names in wanted.items()
        for name in names
    }
    if path is None:
        backends = "vllm.v1.attention.backends"
        chunks = importlib.import_module(f"{backends}.mamba2_attn").compute_varlen_chunk_metadata
        conv = importlib.import_module(f"{backends}.utils").compute_causal_conv1d_metadata
    else:
        folder = path.resolve() / "vllm/v1/attention/backends"
        chunks = _function_of(folder / "mamba2_attn.py", "compute_varlen_chunk_metadata")
        conv = _function_of(folder / "utils.py", "compute_causal_conv1d_metadata")
    return {**found, "compute_varlen_chunk_metadata": chunks, "compute_causal_conv1d_metadata": conv}


def mamba_scan(path: Path | None) -> Any | None:
    """state-spaces/mamba's `mamba_chunk_scan_combined`, from a checkout or an installed mamba_ssm; None without."""
    if path is not None:
        _package("mamba_ssm", path.resolve() / "mamba_ssm")
        for name in ("ops", "ops.triton", "utils"):
            _package(f"mamba_ssm.{name}", path.resolve() / "mamba_ssm" / name.replace(".", "/"))
    elif importlib.util.find_spec("mamba_ssm") is None:
        return None
    return importlib.import_module("mamba_ssm.ops.triton.ssd_combined").mamba_chunk_scan_combined


def _stub_vllm(root: Path) -> None:
    for name in ("vllm", "vllm.utils", "vllm.v1", "vllm.v1.attention", "vllm.v1.attention.backends"):
        _package(name, root / "absent")
    for name in ("vllm.model_executor", "vllm.model_executor.layers", "vllm.model_executor.layers.mamba", VLLM_OPS):
        _package(name, root / name.replace(".", "/"))
    _module("vllm._custom_ops")
    _module("vllm.triton_utils", HAS_TRITON=True, tl=tl, triton=triton)
    _module("vllm.platforms", current_platform=_Platform())
    _module("vllm.envs", VLLM_TUNED_CONFIG_FOLDER=None)
    _module("vllm.logger", init_logger=_logger)
    _module("vllm.utils.platform_utils", get_device_name_as_file_name=_device_file_name)
    _module("vllm.v1.attention.backends.utils", PAD_SLOT_ID=-1, NULL_BLOCK_ID=0)


class _Platform:
    """The questions vLLM's operators ask of their platform, answered for a CUDA GPU."""

    def is_cpu(self) -> bool:
        return False

    def is_xpu(self) -> bool:
        return False

    def is_arch_support_pdl(self) -> bool:
        return bool(torch.cuda.get_device_capability()[0] >= 9)


def _logger(name: str) -> logging.Logger:
    logger = logging.getLogger(name)
    for level in ("info", "warning"):
        setattr(logger, f"{level}_once", lambda *arguments, **options: None)
    return logger


def _device_file_name() -> str:
    return torch.cuda.get_device_name().replace(" ", "_").replace("/", "_")


def _function_of(file: Path, name: str) -> FunctionType:
    """One function of a file whose imports cannot all be satisfied: its source runs alone, with what it names."""
    text = file.read_text()
    found = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef) and node.name == name]
    if not found:
        raise SystemExit(f"{file} has no function {name}; is it vLLM from 2025-09 or later?")
    pin = torch.cuda.is_available()
    names: dict[str, Any] = {
        "itertools": itertools,
        "torch": torch,
        "np": np,
        "Any": Any,
        "PAD_SLOT_ID": -1,
        "PIN_MEMORY": pin,
        "async_tensor_h2d": _to_device,
        "is_pin_memory_available": lambda: pin,
        "np_to_pinned_tensor": lambda array: torch.from_numpy(array).pin_memory() if pin else torch.from_numpy(array),
    }
    exec(compile(ast.Module(found, type_ignores=[]), str(file), "exec"), names)  # noqa: S102  a peer named by the caller
    function: FunctionType = names[name]
    return function


def _to_device(data: Any, device: torch.device, dtype: torch.dtype | None = None) -> torch.Tensor:
    return torch.as_tensor(data, dtype=dtype).pin_memory().to(device, non_blocking=True)


def _package(name: str, folder: Path) -> None:
    _module(name).__path__ = [str(folder)]


def _module(name: str, **content: Any) -> ModuleType:
    module = ModuleType(name)
    module.__dict__.update(content)
    sys.modules[name] = module
    parent, _, leaf = name.rpartition(".")
    if parent in sys.modules:
        setattr(sys.modules[parent], leaf, module)
    return module
