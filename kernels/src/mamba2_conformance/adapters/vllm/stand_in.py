"""Stand-ins for the few modules of vLLM that its Mamba2 operator files import, so that nothing else of it is needed.

The names are all that any commit from 2025-02 to 2026-08 imports; what a commit wants beyond is an ImportError that
names it. Nothing here computes.
"""

import importlib.util
import logging
import sys
from pathlib import Path
from types import ModuleType

import torch
import triton
import triton.language as tl

OPS = "vllm.model_executor.layers.mamba.ops"
PAD_SLOT_ID = -1
NULL_BLOCK_ID = 0
HOPPER = (9, 0)

Capability = tuple[int, int] | int
"""(major, minor), or both digits as one number: 90."""


class Platform:
    """vLLM's `current_platform`, as its CUDA build answers; on a CPU too, for there the interpreter runs Triton."""

    def is_cuda(self) -> bool:
        return True

    def is_cuda_alike(self) -> bool:
        return True

    def is_cpu(self) -> bool:
        return False

    def is_xpu(self) -> bool:
        return False

    def is_rocm(self) -> bool:
        return False

    def is_arch_support_pdl(self) -> bool:
        return self.has_device_capability(HOPPER)

    def has_device_capability(self, capability: Capability, device_id: int = 0) -> bool:
        found = found_capability(device_id)
        return found is not None and found >= as_pair(capability)

    def is_device_capability(self, capability: Capability, device_id: int = 0) -> bool:
        return found_capability(device_id) == as_pair(capability)

    def is_device_capability_family(self, capability: int, device_id: int = 0) -> bool:
        found = found_capability(device_id)
        return found is not None and found[0] == capability // 10


def found_capability(device_id: int) -> tuple[int, int] | None:
    """Of the GPU that is there; None on a CPU, whatever its kernels are told."""
    return torch.cuda.get_device_capability(device_id) if torch.cuda.is_available() else None


def as_pair(capability: Capability) -> tuple[int, int]:
    return capability if isinstance(capability, tuple) else divmod(capability, 10)


class Log(logging.Logger):
    """A logger with vLLM's own methods."""

    warning_once = info_once = debug_once = logging.Logger.debug


def device_name() -> str:
    """vLLM's file name of the GPU, by which it finds tuned tiles."""
    return torch.cuda.get_device_name().replace(" ", "_") if torch.cuda.is_available() else "cpu"


CONTENTS: dict[str, dict[str, object]] = {
    "vllm._custom_ops": {},
    "vllm.envs": {"VLLM_TUNED_CONFIG_FOLDER": None},
    "vllm.logger": {"init_logger": Log},
    "vllm.platforms": {"current_platform": Platform()},
    "vllm.triton_utils": {"HAS_TRITON": True, "tl": tl, "triton": triton},
    "vllm.attention.backends.utils": {"PAD_SLOT_ID": PAD_SLOT_ID},
    "vllm.utils.platform_utils": {"get_device_name_as_file_name": device_name},
    "vllm.v1.attention.backends.utils": {"PAD_SLOT_ID": PAD_SLOT_ID, "NULL_BLOCK_ID": NULL_BLOCK_ID},
}


def install(ops: Path) -> None:
    """Put the stand-ins into sys.modules, and `ops` as the package of vLLM's operators. Its __init__ runs.

    Raises whatever that __init__ raises.
    """
    for name, content in CONTENTS.items():
        package(name.rpartition(".")[0])
        stand_in(name).__dict__.update(content)
    package(OPS.rpartition(".")[0])
    init = ops / "__init__.py"
    spec = importlib.util.spec_from_file_location(OPS, init, submodule_search_locations=[str(ops)])
    if spec is None or spec.loader is None:
        raise ImportError(f"{init} cannot be loaded as {OPS}")
    sys.modules[OPS] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)


def package(name: str) -> None:
    """An empty package and its parents. No path leads out of it, so that an installed vLLM never answers."""
    if not name:
        return
    package(name.rpartition(".")[0])
    stand_in(name).__path__ = []


def stand_in(name: str) -> ModuleType:
    module = sys.modules.setdefault(name, ModuleType(name))
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, module)
    return module
