"""How far one output is from what is wanted. No tolerance is chosen here and no kernel is called."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from mamba2_conformance.oracle import Array, exact


@dataclass(frozen=True)
class Deviation:
    """The largest error of one output. `tolerance` is absolute; errors are None where the output is not finite."""

    output: str
    max_abs_err: float | None
    max_rel_err: float | None
    tolerance: float
    message: str = ""

    @property
    def passed(self) -> bool:
        return self.max_abs_err is not None and self.max_abs_err <= self.tolerance

    @property
    def excess(self) -> float:
        """Error in units of the tolerance, to find the worst of several outputs."""
        if self.max_abs_err is None:
            return float("inf")
        if self.tolerance == 0.0:
            return 0.0 if self.max_abs_err == 0.0 else float("inf")
        return self.max_abs_err / self.tolerance


def deviation(output: str, got: Tensor, want: Array, relative_tolerance: float) -> Deviation:
    """Compare an output with the oracle's. Relative error and tolerance refer to the largest wanted value.

    An output of the wrong shape or with values that are not finite has no error and does not pass.
    """
    scale = float(np.abs(want).max(initial=0.0))
    tolerance = relative_tolerance * max(1.0, scale)
    if tuple(got.shape) != want.shape:
        return Deviation(output, None, None, tolerance, f"{output} has shape {tuple(got.shape)}, expected {want.shape}")
    values = exact(got)
    bad = ~np.isfinite(values)
    if bad.any():
        message = f"{output}: {bad.sum()} of {bad.size} values are not finite, first at {first_index(bad)}"
        return Deviation(output, None, None, tolerance, message)
    errors = np.abs(values - want)
    largest = float(errors.max(initial=0.0))
    message = ""
    if largest > tolerance:
        place = np.unravel_index(int(errors.argmax()), errors.shape)
        index = tuple(int(part) for part in place)
        wrong = int((errors > tolerance).sum())
        message = (
            f"{output}{list(index)} is {values[place]:.6g}, expected {want[place]:.6g}; "
            f"{wrong} of {errors.size} values are over {tolerance:.3g}, first at {first_index(errors > tolerance)}"
        )
    return Deviation(output, largest, largest / scale if scale else largest, tolerance, message)


def same_bits(output: str, got: Tensor, before: Tensor) -> Deviation:
    """No bit may have changed, NaN included. The error counts changed values."""
    changed = (as_integers(got) != as_integers(before)).cpu().numpy()
    count = int(changed.sum())
    message = f"{output}: {count} of {changed.size} values changed, first at {first_index(changed)}" if count else ""
    return Deviation(output, float(count), None, 0.0, message)


def holds(output: str, condition: bool, message: str) -> Deviation:
    """A property that has no size: it holds or it does not."""
    return Deviation(output, 0.0, None, 0.0) if condition else failed(output, message)


def failed(output: str, message: str) -> Deviation:
    """A property that does not hold, or an output that does not exist."""
    return Deviation(output, None, None, 0.0, message)


def first_index(mask: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]) -> list[int]:
    return [int(part) for part in np.unravel_index(int(mask.argmax()), mask.shape)]


def worst(deviations: Sequence[Deviation]) -> Deviation:
    return max(deviations, key=lambda one: one.excess)


def as_integers(tensor: Tensor) -> Tensor:
    return tensor.contiguous().view({2: torch.int16, 4: torch.int32, 8: torch.int64}[tensor.element_size()])
