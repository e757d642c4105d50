"""Our own layout, `mamba2_varlen`: loaded from a given folder and from nowhere else, told by its signatures."""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from types import ModuleType

from torch import Tensor

from mamba2_conformance.adapters.protocol import LoadError, ScanResult
from mamba2_conformance.problem import Convolution, ConvolutionStep, GatedNorm, Scan, StateStep
from mamba2_conformance.trait import Trait

PACKAGE = "mamba2_varlen"

BACKENDS = {"reference": "reference", "torch": "torch_backend", "triton": "triton_backend"}
"""Backend -> the subpackage that holds it."""

ERAS = {
    "metadata": {
        "build_metadata": {"cu_seqlens", "chunk_size"},
        "ssd_prefill": {"x", "dt", "A", "B", "C", "metadata", "initial_states", "out", "backend"},
        "causal_conv1d_prefill": {"x", "weight", "bias", "metadata", "initial_states", "activation", "backend"},
        "causal_conv1d_update": {"x", "conv_state", "weight", "state_indices", "backend"},
        "selective_state_update": {"state", "x", "dt", "A", "B", "C", "state_indices", "backend"},
        "rms_norm_gated": {"x", "weight", "z", "group_size", "norm_before_gate", "backend"},
    }
}
"""API generation -> functions and the parameters this adapter passes them."""


@dataclass(frozen=True)
class VarlenAdapter:
    """Calls `mamba2_varlen` as it was loaded by `load`."""

    module: ModuleType
    folder: Path
    era: str
    layout: str = PACKAGE
    lacks: frozenset[Trait] = frozenset()
    outside: frozenset[Trait] = frozenset()

    @property
    def backends(self) -> tuple[str, ...]:
        return tuple(name for name, package in BACKENDS.items() if (self.folder / package).exists())

    def metadata(self, lens: tuple[int, ...], chunk_size: int) -> object:
        return self.module.build_metadata([0, *accumulate(lens)], chunk_size=chunk_size)

    def scan(self, problem: Scan, *, backend: str, out: Tensor | None = None, states: bool = False) -> ScanResult:
        metadata = self._metadata(problem.lens, problem.chunk_size, problem.x)
        result = self.module.ssd_prefill(
            problem.x, problem.dt, problem.A, problem.B, problem.C,
            metadata=metadata, D=problem.D, z=problem.z,
            dt_bias=problem.dt_bias, dt_softplus=problem.dt_softplus, dt_limit=problem.dt_limit,
            initial_states=problem.initial_states, state_dtype=problem.state_dtype,
            out=out, return_intermediate_states=states, backend=backend,
        )  # fmt: skip
        if not states:
            return ScanResult(result.out, result.final_states)
        ends = tuple(int(end) for end in metadata.cu_chunk_seqlens.tolist()[1:])
        return ScanResult(result.out, result.final_states, result.intermediate_states, ends)

    def convolution(self, problem: Convolution, *, backend: str, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
        result = self.module.causal_conv1d_prefill(
            problem.x, problem.weight, problem.bias,
            metadata=self._metadata(problem.lens, 64, problem.x), initial_states=problem.initial_states,
            activation=problem.activation, out=out, backend=backend,
        )  # fmt: skip
        return result.out, result.final_states

    def convolution_step(self, problem: ConvolutionStep, *, backend: str) -> Tensor:
        out: Tensor = self.module.causal_conv1d_update(
            problem.x, problem.state, problem.weight, problem.bias,
            activation=problem.activation, state_indices=problem.state_indices, backend=backend,
        )  # fmt: skip
        return out

    def state_step(self, problem: StateStep, *, backend: str, out: Tensor | None = None) -> Tensor:
        result: Tensor = self.module.selective_state_update(
            problem.state, problem.x, problem.dt, problem.A, problem.B, problem.C,
            D=problem.D, z=problem.z,
            dt_bias=problem.dt_bias, dt_softplus=problem.dt_softplus, dt_limit=problem.dt_limit,
            state_indices=problem.state_indices, out=out, backend=backend,
        )  # fmt: skip
        return result

    def gated_norm(self, problem: GatedNorm, *, backend: str) -> Tensor:
        out: Tensor = self.module.rms_norm_gated(
            problem.x, problem.weight, z=problem.z, eps=problem.eps,
            group_size=problem.group_size, norm_before_gate=problem.norm_before_gate, backend=backend,
        )  # fmt: skip
        return out

    def tiles(self) -> Mapping[str, tuple[object, ...]]:
        if not (self.folder / "triton_backend" / "tiles.py").exists():
            return {}
        candidates = importlib.import_module(f"{PACKAGE}.triton_backend.tiles").CANDIDATES
        return {str(kernel): tuple(tiles) for kernel, tiles in candidates.items()}

    def pinned(self, kernel: str, tile: object) -> AbstractContextManager[object]:
        block: AbstractContextManager[object] = importlib.import_module(f"{PACKAGE}.triton_backend.tiles").pin_tiles(
            kernel, tile
        )
        return block

    def every_tile(self) -> AbstractContextManager[object]:
        return nullcontext()  # a table chooses, and what it chooses is what runs

    def _metadata(self, lens: tuple[int, ...], chunk_size: int, on: Tensor) -> "Metadata":
        metadata: Metadata = self.module.build_metadata([0, *accumulate(lens)], chunk_size=chunk_size, device=on.device)
        return metadata


class Metadata:
    """What this adapter reads of the kernels' own metadata object."""

    cu_chunk_seqlens: Tensor


def load(import_dir: Path) -> VarlenAdapter:
    """Import `mamba2_varlen` from `import_dir`, which is put first on sys.path.

    Raises LoadError: no package there (`no_kernels`), an error of its own at import (`kernels_do_not_import`), another
    copy imported instead (`kernels_shadowed`), or functions this check does not know (`unknown_signature`).
    """
    folder = import_dir.resolve() / PACKAGE
    if not (folder / "__init__.py").is_file():
        message = f"there is no {PACKAGE}/__init__.py in {import_dir}; does the commit keep its kernels elsewhere?"
        raise LoadError(kind="permanent", reason="no_kernels", message=message)
    module = imported(import_dir)
    found = Path(module.__file__ or "").resolve()
    if folder not in found.parents:
        message = f"{PACKAGE} came from {found} instead of {folder}; check it in a fresh process"
        raise LoadError(kind="permanent", reason="kernels_shadowed", message=message)
    return VarlenAdapter(module, folder, era_of(module))


def imported(import_dir: Path) -> ModuleType:
    """The package; whatever its own code raises becomes one LoadError with that error as its text."""
    sys.path.insert(0, str(import_dir.resolve()))
    importlib.invalidate_caches()
    try:
        return importlib.import_module(PACKAGE)
    except (Exception, SystemExit) as error:
        message = f"{PACKAGE} does not import: {type(error).__name__}: {error}"
        raise LoadError(kind="permanent", reason="kernels_do_not_import", message=message) from error


def era_of(module: ModuleType) -> str:
    """The API generation whose functions and parameters the module has. Raises LoadError naming what is missing."""
    missing: list[str] = []
    for era, functions in ERAS.items():
        missing = [lack for name, parameters in functions.items() for lack in lacking(module, name, parameters)]
        if not missing:
            return era
    message = f"{PACKAGE} has no known signature; missing: {', '.join(missing)}"
    raise LoadError(kind="unsupported", reason="unknown_signature", message=message)


def lacking(module: ModuleType, name: str, parameters: set[str]) -> list[str]:
    function = getattr(module, name, None)
    if not callable(function):
        return [name]
    has = set(inspect.signature(function).parameters)
    return [f"{name}({parameter}=)" for parameter in sorted(parameters - has)]
