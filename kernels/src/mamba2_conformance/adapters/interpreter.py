"""What Triton's interpreter cannot do by itself with kernels written for a GPU. Numbers of the kernels do not change."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import triton.language as tl
from torch import Tensor
from triton import knobs
from triton.runtime import interpreter
from triton.runtime.interpreter import InterpreterBuilder, TensorHandle


def pointer_in_interpreter(tensor: Tensor) -> object:
    """The tensor as a kernel finds it among its arguments: itself on a GPU, its pointer in the interpreter.

    For launch grids that replace the kernel's arguments, which the interpreter has turned into pointers by then.
    """
    return interpreter._implicit_cvt(tensor) if knobs.runtime.interpret else tensor


@contextmanager
def bfloat16_products() -> Iterator[None]:
    """Triton 3.6's interpreter multiplies bfloat16 bit patterns as if they were integers; inside the block they are
    multiplied as the numbers they are. A product of two is exact in float32, as it is in a GPU's tensor cores."""
    plain = InterpreterBuilder.create_dot

    def create_dot(self: Any, a: Any, b: Any, *rest: Any) -> Any:
        return plain(self, widened(a), widened(b), *rest)

    with patch.object(InterpreterBuilder, "create_dot", create_dot):
        yield


def widened(operand: Any) -> Any:
    """A bfloat16 operand as float32; anything else as it is. The interpreter keeps bfloat16 in 16-bit integers."""
    if operand.dtype.scalar != tl.bfloat16:
        return operand
    values = (operand.data.astype(np.uint32) << 16).view(np.float32)
    return TensorHandle(values, tl.float32)
