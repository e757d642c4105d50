"""Calls vLLM's operators as its mixer does: with its index tensors, its padded slots and its expanded decode inputs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from triton import knobs

from mamba2_conformance.adapters.parameters import parameters_of
from mamba2_conformance.adapters.protocol import LoadError, NotJudged, ScanResult
from mamba2_conformance.adapters.tied import tied_step
from mamba2_conformance.adapters.tuned import Tuned
from mamba2_conformance.adapters.tuner import Tuners, tuners_in
from mamba2_conformance.adapters.vllm import conv_call, scan_call, stand_in
from mamba2_conformance.adapters.vllm.operators import Operators
from mamba2_conformance.problem import Convolution, ConvolutionStep, Scan, StateStep
from mamba2_conformance.trait import Trait

FOLDER = "ops"
"""The last name of vLLM's folder of operators, as which it is unpacked."""

PADDING = -1

SIXTEEN_BITS = 2
"""Bytes."""

NO_TOKENS = "a batch without tokens makes these kernels write out of bounds in some eras, which ends the process"
"""Seen in the state passing of the first two eras, whose tensor of states has no chunk then."""

OUTSIDE = frozenset(
    {
        Trait.EMPTY_SEQUENCES,
        Trait.WIDE_CONVOLUTION,
        Trait.CHANNEL_MAJOR,
        Trait.KEPT_PAST,
        Trait.MIXED_STATES,
        Trait.HUGE_BATCH,
    }
)
"""The scheduler never issues an empty prefill, no model has a convolution wider than 4, the mixer hands over x with
channels next to each other in memory, and a past is kept only for prefix caching in mode "all", where vLLM PR 56196
is open. States are read from and written to one pool, so they have one dtype; no engine decodes 65,536 rows at once."""

NEVER = frozenset({Trait.CHUNK_SIZE_REFUSED, Trait.STEP_LIMIT})
"""There is no metadata function in these files that could refuse, and no limit of dt in the decode step."""


@dataclass(frozen=True)
class VllmAdapter(Tuned):
    """One commit's operator files, loaded by `load`."""

    operators: Operators
    era: str
    tuners: Tuners
    layout: str = "vllm"
    backends: tuple[str, ...] = ("triton",)
    outside: frozenset[Trait] = OUTSIDE

    @property
    def norm(self) -> Callable[..., Any]:
        return self.operators.gated_norm

    @property
    def lacks(self) -> frozenset[Trait]:
        told = {
            Trait.STATE_DTYPE: (self.operators.scan, "state_dtype"),
            Trait.INTERMEDIATE_STATES: (self.operators.scan, "return_intermediate_states"),
            Trait.KEPT_PAST: (self.operators.convolution, conv_call.LAST_BLOCK),
        }
        return NEVER | {trait for trait, (of, parameter) in told.items() if parameter not in parameters_of(of)}

    def metadata(self, lens: tuple[int, ...], chunk_size: int) -> object:
        return scan_call.indices(self.era, lens, chunk_size, torch.device("cpu"))

    def scan(self, problem: Scan, *, backend: str, out: Tensor | None = None, states: bool = False) -> ScanResult:
        if not len(problem.x):
            raise NotJudged(NO_TOKENS)
        buffer = torch.empty_like(problem.x, memory_format=torch.contiguous_format) if out is None else out
        arguments, ends = scan_call.arguments(self.era, problem, buffer)
        optional = {"state_dtype": state_dtype_of(problem), "return_intermediate_states": states}
        accepted = parameters_of(self.operators.scan)
        arguments |= {name: value for name, value in optional.items() if name in accepted}
        result = self._run(self.operators.scan, problem.x, arguments)
        if not states:
            return ScanResult(buffer, result)
        last = scan_call.last_chunks(self.era, problem)
        return ScanResult(buffer, result[last], result, ends)

    def convolution(self, problem: Convolution, *, backend: str, out: Tensor | None = None) -> tuple[Tensor, Tensor]:
        arguments, slots = conv_call.arguments(problem)
        result = self._run(self.operators.convolution, problem.x, arguments).t()
        if problem.initial_states is not None and problem.keep_past:
            problem.initial_states.copy_(slots.read)
        return result if out is None else out.copy_(result), slots.written

    def convolution_step(self, problem: ConvolutionStep, *, backend: str) -> Tensor:
        function = self.operators.convolution_step
        arguments = {
            "x": problem.x.clone(),  # it is written over
            "conv_state": problem.state,
            "weight": problem.weight,
            "bias": problem.bias,
            "activation": problem.activation,
            "conv_state_indices": slots_of(problem),
        }
        out: Tensor = self._run(function, problem.x, arguments | padding_of(function))
        return out

    def state_step(self, problem: StateStep, *, backend: str, out: Tensor | None = None) -> Tensor:
        function = self.operators.state_step
        buffer = torch.empty_like(problem.x) if out is None else out
        arguments = tied_step(problem) | {"out": buffer}
        self._run(function, problem.x, arguments | padding_of(function))
        return buffer


def state_dtype_of(problem: Scan) -> torch.dtype | None:
    """What the mixer passes: the dtype of its pool of states. None leaves 16-bit kernels to round a float32 state to x's
    own dtype, which no caller asks for."""
    if problem.state_dtype is not None or problem.initial_states is None or problem.x.element_size() > SIXTEEN_BITS:
        return problem.state_dtype
    return problem.initial_states.dtype


def slots_of(problem: ConvolutionStep) -> Tensor:
    """The mixer always names slots, and the kernels of 2025-09 and later do not compile without them."""
    if problem.state_indices is not None:
        return problem.state_indices
    return torch.arange(len(problem.x), dtype=torch.int32, device=problem.x.device)


def padding_of(function: Callable[..., object]) -> dict[str, int]:
    """Which slot number marks padding is an argument of every era, by one name or another."""
    accepted = parameters_of(function)
    return {name: PADDING for name in ("null_block_id", "pad_slot_id") if name in accepted}


def load(import_dir: Path) -> VllmAdapter:
    """The operators below `import_dir`. Raises LoadError: no_kernels, kernels_do_not_import, unknown_signature."""
    folder = import_dir.resolve() / FOLDER
    if not (folder / "ssd_combined.py").is_file():
        message = f"there is no {FOLDER}/ssd_combined.py in {import_dir}; this commit has no SSD prefill in Triton"
        raise LoadError(kind="unsupported", reason="no_kernels", message=message)
    try:
        stand_in.install(folder)
    except (Exception, SystemExit) as error:
        message = f"the operators' package does not import: {type(error).__name__}: {error}"
        raise LoadError(kind="permanent", reason="kernels_do_not_import", message=message) from error
    operators = Operators.of(folder)
    if not knobs.runtime.interpret:
        knobs.language.fp32_default = "ieee"  # else float32 operands are cut to TF32's ten bits, which hides a bug
    return VllmAdapter(operators, operators.era, tuners_in(operators.modules))
