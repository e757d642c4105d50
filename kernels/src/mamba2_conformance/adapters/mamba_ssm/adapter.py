"""Calls state-spaces/mamba's operators. Packed sequences share a batch of one and are told apart by seq_idx, but a
carried state belongs to a whole batch entry there, so that sequences which have one are put one by one."""

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import Tensor
from triton import knobs

from mamba2_conformance.adapters.index_tensors import cu_seqlens, token_sequences
from mamba2_conformance.adapters.parameters import parameters_of
from mamba2_conformance.adapters.protocol import LoadError, NotJudged, ScanResult
from mamba2_conformance.adapters.tied import tied_step
from mamba2_conformance.adapters.tuned import Tuned
from mamba2_conformance.adapters.tuner import Tuners, tuners_in
from mamba2_conformance.problem import Convolution, ConvolutionStep, Scan, StateStep, rows_of
from mamba2_conformance.trait import Trait

PACKAGE = "mamba_ssm"
FOLDERS = ("ops", "ops.triton", "utils")
"""Packages whose __init__ is not run: the outermost one imports compiled extensions."""

NEVER = frozenset({Trait.CONVOLUTION, Trait.CHUNK_SIZE_REFUSED, Trait.STEP_LIMIT, Trait.INTERMEDIATE_STATES})
"""Convolutions are a distribution of their own there, and states of chunks are not returned."""

OUTSIDE = frozenset({Trait.EMPTY_SEQUENCES})

NEEDED = frozenset({"initial_states", "seq_idx", "cu_seqlens", "return_final_states", "return_varlen_states"})


@dataclass(frozen=True)
class MambaSsmAdapter(Tuned):
    """One commit's operators, loaded by `load`."""

    scan_function: Callable[..., Any]
    step_function: Callable[..., Any]
    norm_function: Callable[..., Any]
    tuners: Tuners
    era: str = "batch"
    layout: str = PACKAGE
    backends: tuple[str, ...] = ("triton",)
    outside: frozenset[Trait] = OUTSIDE

    @property
    def norm(self) -> Callable[..., Any]:
        return self.norm_function

    @property
    def lacks(self) -> frozenset[Trait]:
        has_dtype = "state_dtype" in parameters_of(self.scan_function)
        return NEVER if has_dtype else NEVER | {Trait.STATE_DTYPE}

    def metadata(self, lens: tuple[int, ...], chunk_size: int) -> object:
        raise NotJudged("these operators take no metadata")

    def scan(self, problem: Scan, *, backend: str, out: Tensor | None = None, states: bool = False) -> ScanResult:
        alone = problem.initial_states is not None or len(problem.lens) == 1
        parts = [rows_of(problem, [index]) for index in range(len(problem.lens))] if alone else [problem]
        results = [self._scan(part, packed=not alone) for part in parts]
        joined = torch.cat([result.out for result in results])
        finals = torch.cat([result.final_states for result in results])
        return ScanResult(joined if out is None else out.copy_(joined), finals)

    def _scan(self, problem: Scan, *, packed: bool) -> ScanResult:
        device = problem.x.device
        if not len(problem.x):
            raise NotJudged(
                "a batch entry without tokens makes these kernels write out of bounds, which ends the process"
            )
        arguments: dict[str, Any] = {
            "x": problem.x[None], "dt": problem.dt[None], "A": problem.A, "B": problem.B[None], "C": problem.C[None],
            "chunk_size": problem.chunk_size, "D": problem.D, "z": None if problem.z is None else problem.z[None],
            "dt_bias": problem.dt_bias, "initial_states": problem.initial_states,
            "dt_softplus": problem.dt_softplus, "dt_limit": problem.dt_limit,
            "return_varlen_states": packed, "return_final_states": not packed,
        }  # fmt: skip
        if packed:
            arguments["seq_idx"] = token_sequences(problem.lens, device)[None]
            arguments["cu_seqlens"] = cu_seqlens(problem.lens, device)
        if "state_dtype" in parameters_of(self.scan_function):
            arguments["state_dtype"] = problem.state_dtype
        result, finals = self._run(self.scan_function, problem.x, arguments)
        return ScanResult(result[0], finals)

    def convolution(self, problem: Convolution, *, backend: str, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
        raise NotJudged("these operators have no convolution")

    def convolution_step(self, problem: ConvolutionStep, *, backend: str) -> Tensor:
        raise NotJudged("these operators have no convolution")

    def state_step(self, problem: StateStep, *, backend: str, out: Tensor | None = None) -> Tensor:
        result: Tensor = self._run(self.step_function, problem.x, tied_step(problem))
        return result if out is None else out.copy_(result)


def load(import_dir: Path) -> MambaSsmAdapter:
    """The operators below `import_dir`. Raises LoadError: no_kernels, kernels_do_not_import, unknown_signature."""
    folder = import_dir.resolve() / PACKAGE
    if not (folder / "ops" / "triton" / "ssd_combined.py").is_file():
        message = f"there is no {PACKAGE}/ops/triton/ssd_combined.py in {import_dir}; this commit has no SSD prefill"
        raise LoadError(kind="unsupported", reason="no_kernels", message=message)
    hollow(folder)
    try:
        combined = importlib.import_module(f"{PACKAGE}.ops.triton.ssd_combined")
        step = importlib.import_module(f"{PACKAGE}.ops.triton.selective_state_update").selective_state_update
        norm = importlib.import_module(f"{PACKAGE}.ops.triton.layernorm_gated").rmsnorm_fn
    except (Exception, SystemExit) as error:
        message = f"{PACKAGE} does not import: {type(error).__name__}: {error}"
        raise LoadError(kind="permanent", reason="kernels_do_not_import", message=message) from error
    missing = NEEDED - parameters_of(combined.mamba_chunk_scan_combined)
    if missing:
        message = f"mamba_chunk_scan_combined has no {', '.join(sorted(missing))}: an API this check does not know"
        raise LoadError(kind="unsupported", reason="unknown_signature", message=message)
    if not knobs.runtime.interpret:
        knobs.language.fp32_default = "ieee"  # else float32 operands are cut to TF32's ten bits, which hides a bug
    modules = [module for name, module in sys.modules.items() if name.startswith(f"{PACKAGE}.ops.triton.")]
    return MambaSsmAdapter(combined.mamba_chunk_scan_combined, step, norm, forward_only(tuners_in(modules)))


def hollow(folder: Path) -> None:
    """The packages around the operators, found by path; their own __init__ is left out."""
    sys.modules[PACKAGE] = outermost = ModuleType(PACKAGE)
    outermost.__path__ = [str(folder)]
    for name in FOLDERS:
        module = ModuleType(f"{PACKAGE}.{name}")
        module.__path__ = [str(folder.joinpath(*name.split(".")))]
        sys.modules[module.__name__] = module


def forward_only(tuners: Tuners) -> Tuners:
    """Without the kernels of the backward pass, which no case calls."""
    tiles = {kernel: tiles for kernel, tiles in tuners.tiles.items() if "bwd" not in kernel}
    return replace(tuners, tiles=tiles)
