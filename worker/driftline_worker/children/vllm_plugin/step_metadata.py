"""One metadata object of the kernels a step of the engine, shared by all its layers.

Building one reads the sequences' boundaries, which waits for the device; vLLM hands the same ones to every layer of a step.
"""

from collections.abc import Callable
from typing import Any

from torch import Tensor

Step = object
"""What a step is known by: the engine's forward context, a new object for each."""


class StepMetadata:
    """`build` is the kernels' own build_metadata; `current_step` tells the step, or None outside of one."""

    def __init__(self, build: Callable[..., Any], current_step: Callable[[], Step | None]) -> None:
        self._build = build
        self._current_step = current_step
        self._step: Step | None = None
        self._made: dict[tuple[int, int], Any] = {}

    def of(self, boundaries: Tensor, chunk_size: int) -> Any:
        """The metadata of packed sequences that begin at `boundaries` (b+1). Outside of a step nothing is kept."""
        step = self._current_step()
        if step is None:
            return self._build(boundaries, chunk_size=chunk_size)
        if step is not self._step:
            self._step, self._made = step, {}
        key = (chunk_size, boundaries.shape[0])
        if key not in self._made:
            self._made[key] = self._build(boundaries, chunk_size=chunk_size)
        return self._made[key]


def engine_step() -> Step | None:
    """vLLM's forward context, if it belongs to a step with requests: a profiling run has no metadata of its own."""
    from vllm.forward_context import get_forward_context

    try:
        context = get_forward_context()
    except AssertionError:  # vLLM's way to say that there is none
        return None
    return None if context.attn_metadata is None else context
