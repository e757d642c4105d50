"""The entry point: load the kernels that the environment names, and put them in the place of vLLM's operators.

vLLM calls it in every process of an engine, before a model is made. Layers bind operators by name when they are imported,
so each operator is replaced in its own module and in all of vLLM's that took it from there.
"""

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from ..hf_engine.kernels_loader import PACKAGE, load_kernels
from ..hf_engine.refusal import permanent
from .decode import Decode
from .distribution import BACKEND, KERNELS, REPORT
from .gated_norm import GatedNorm, layer_forward
from .kernel_calls import KernelCalls, UnservedError
from .prefill import Prefill
from .signatures import Era, Function, known, parameters, scan_of
from .step_metadata import StepMetadata, engine_step

LAYERS = "vllm.model_executor.layers.mamba"
FORWARDS = ("forward_native", "forward_cuda")
REPLAYED = ("ops.selective_state_update_replayssm_output_only", "selective_state_update_replayssm_output_only")
"""A decode step that keeps recent inputs instead of the state: nothing of ours."""

Served = Callable[[str, dict[str, Any]], Any]
"""An operator of ours: the name of vLLM's, and its arguments by name."""


def register() -> None:
    """Raises Refusal: kernels_do_not_import, kernels_incomplete, ops_unknown."""
    if PACKAGE in sys.modules:  # vLLM may load a plugin more than once in a process
        return
    put_in_place(load_kernels(Path(os.environ[KERNELS])), os.environ[BACKEND], Path(os.environ[REPORT]))


def put_in_place(kernels: ModuleType, backend: str, report: Path) -> None:
    """Replace what this vLLM has. Raises Refusal ops_unknown naming what the plugin cannot stand for."""
    if not callable(getattr(kernels, "rms_norm_gated", None)):
        raise permanent("kernels_incomplete", f"{PACKAGE} at this commit lacks rms_norm_gated; engine vllm calls it")
    calls = KernelCalls(kernels, backend, report)
    convolutions = _module("ops.causal_conv1d")
    null_block = getattr(convolutions, "NULL_BLOCK_ID", None)
    prefill = Prefill(calls, StepMetadata(kernels.build_metadata, engine_step), null_block)
    decode = Decode(calls, null_block)
    _replace(convolutions, "causal_conv1d_fn", prefill.convolution)
    _replace(convolutions, "causal_conv1d_update", decode.convolution)
    _replace_scan(prefill)
    # Layers take it from the dispatcher, in releases that have one.
    dispatcher = _module("ops.ssu_dispatch", optional=True) or _module("ops.mamba_ssm")
    _replace(dispatcher, "selective_state_update", decode.state_update)
    _replace_norm(calls)
    _refuse_replayed()


def _replace_scan(prefill: Prefill) -> None:
    module = _module("ops.ssd_combined")
    era, name = scan_of(module)
    original: Function = getattr(module, name)
    takes_out = "out" in parameters(original)
    match era:
        case Era.CHUNK_ALIGNED:
            served: Served = prefill.chunk_aligned_scan
        case Era.VARLEN:
            served = prefill.varlen_scan
        case Era.BATCH:

            def served(origin: str, given: dict[str, Any]) -> Any:
                return prefill.batch_scan(origin, given, takes_out=takes_out)

    _swap(module, name, original, served)


def _replace_norm(calls: KernelCalls) -> None:
    mixer = _module("mamba_mixer2")
    norm = GatedNorm(calls, f"{mixer.__name__}.Mixer2RMSNormGated")
    layer = mixer.Mixer2RMSNormGated
    layer._driftline = norm  # for as long as the layer lives
    for name in FORWARDS:
        setattr(layer, name, layer_forward(getattr(layer, name)))
    functions = _module("ops.layernorm_gated", optional=True)
    if functions is not None:
        _replace(functions, "rms_norm_gated", norm.function)


def _refuse_replayed() -> None:
    name, operator = REPLAYED
    module = _module(name, optional=True)
    if module is None:
        return

    def served(origin: str, given: dict[str, Any]) -> Any:
        raise UnservedError(f"{origin} is not served; turn ReplaySSM off")

    _swap(module, operator, getattr(module, operator), served)


def _replace(module: ModuleType, name: str, served: Served) -> None:
    _swap(module, name, known(module, name), served)


def _swap(module: ModuleType, name: str, original: Function, served: Served) -> None:
    """`served` in place of `original` in its module and wherever vLLM bound it."""
    names, origin = parameters(original), f"{module.__name__}.{name}"

    def operator(*given: Any, **named: Any) -> Any:
        return served(origin, dict(zip(names, given, strict=False)) | named)

    for one in [one for key, one in list(sys.modules.items()) if key.partition(".")[0] == "vllm"]:
        for attribute, value in list(vars(one).items()):
            if value is original:
                setattr(one, attribute, operator)


def _module(name: str, *, optional: bool = False) -> Any:
    full = f"{LAYERS}.{name}"
    try:
        return importlib.import_module(full)
    except ModuleNotFoundError as error:
        if optional and error.name == full:
            return None
        raise permanent("ops_unknown", f"this vLLM has no {full}: {error}") from error
