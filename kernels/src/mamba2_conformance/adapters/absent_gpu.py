"""Lets code that names its GPU run on tensors of a CPU, where Triton's interpreter stands for one."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from unittest.mock import patch

import torch


@contextmanager
def device_contexts_ignored(device: torch.device) -> Iterator[None]:
    """Inside the block, choosing a GPU by its number does nothing if the tensors are not on one."""
    with ExitStack() as stack:
        if device.type == "cpu":
            stack.enter_context(patch.object(torch.cuda, "device", lambda number: nullcontext()))
            stack.enter_context(patch.object(torch.accelerator, "device_index", lambda number: nullcontext()))
        yield
