"""The functions in vLLM's operator files: each file imported by itself, so that one that fails takes down its own only."""

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Self

from mamba2_conformance.adapters.parameters import parameters_of
from mamba2_conformance.adapters.protocol import LoadError, NotJudged
from mamba2_conformance.adapters.vllm import era
from mamba2_conformance.adapters.vllm.stand_in import OPS

Function = Callable[..., Any]


@dataclass(frozen=True)
class Operators:
    """Five functions. One that its file does not offer raises, when it is called, why."""

    era: str
    scan: Function
    convolution: Function
    convolution_step: Function
    state_step: Function
    gated_norm: Function
    modules: tuple[ModuleType, ...]

    @classmethod
    def of(cls, folder: Path) -> Self:
        """Raises LoadError if there is no SSD prefill of a known era: without it there is nothing to judge."""
        try:
            combined = importlib.import_module(f"{OPS}.ssd_combined")
        except (Exception, SystemExit) as error:
            raise load_error(error) from error
        found, scan = era.entry_of(combined)
        return cls(
            found,
            scan,
            function_in(folder, "causal_conv1d", "causal_conv1d_fn", {"metadata", "conv_states"}),
            function_in(folder, "causal_conv1d", "causal_conv1d_update", {"conv_state_indices"}),
            function_in(folder, "mamba_ssm", "selective_state_update", {"state_batch_indices", "out"}),
            function_in(folder, "layernorm_gated", "rms_norm_gated", {"group_size", "norm_before_gate"}),
            tuple(module for name, module in sys.modules.items() if name.startswith(f"{OPS}.")),
        )


def function_in(folder: Path, file: str, name: str, needed: set[str]) -> Function:
    """The function, or one that raises when called: NotJudged for what is not there or not known, else its own error."""
    if not (folder / f"{file}.py").is_file():
        return raising(NotJudged(f"this commit has no {file}.py"))
    try:
        function = getattr(importlib.import_module(f"{OPS}.{file}"), name, None)
    except (Exception, SystemExit) as error:
        unknown = isinstance(error, ImportError) and foreign(error)
        return raising(
            NotJudged(f"{file}.py imports what this check has no stand-in for: {error}") if unknown else error
        )
    if function is None:
        return raising(NotJudged(f"{file}.py has no {name}"))
    missing = needed - parameters_of(function)
    if missing:
        return raising(
            NotJudged(f"{name} of {file}.py has no {', '.join(sorted(missing))}: an API this check does not know")
        )
    checked: Function = function
    return checked


def raising(error: BaseException) -> Function:
    def function(**arguments: object) -> object:
        raise error

    return function


def foreign(error: ImportError) -> bool:
    """Did it ask for a part of vLLM outside its operators?"""
    name = error.name or ""
    return name.split(".")[0] == "vllm" and not name.startswith(OPS)


def load_error(error: BaseException) -> LoadError:
    message = f"ssd_combined does not import: {type(error).__name__}: {error}"
    if isinstance(error, ImportError) and foreign(error):
        return LoadError(kind="unsupported", reason="unknown_import", message=message)
    return LoadError(kind="permanent", reason="kernels_do_not_import", message=message)
