"""What the kernels under test were asked to do in an evaluation, and where their exceptions get a name."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import torch

from .kernels_loader import brief_traceback
from .refusal import Refusal, permanent


class KernelCalls:
    """Counts of calls by operator, of metadata builds, and of scans that began with a carried state."""

    def __init__(self) -> None:
        self.by_operator: Counter[str] = Counter()
        self.forwards = 0
        self.metadata_builds = 0
        self.carried_scans = 0

    @contextmanager
    def running(self, operator: str) -> Iterator[None]:
        """Count one call; an exception inside becomes Refusal kernel_crashed, memory shortage excepted."""
        self.by_operator[operator] += 1
        try:
            yield
        except (Refusal, MemoryError, torch.OutOfMemoryError):
            raise
        except (Exception, SystemExit) as error:
            raise permanent("kernel_crashed", f"{operator}: {brief_traceback(error)}") from error

    def check_mode(self, mode: str, *, long_prompts: bool) -> None:
        """Raises Refusal engine_mismatch if prompts were not prefilled as the mode says.

        long_prompts: whether any prompt is longer than two chunks, so that V1 must have carried a state.
        """
        if self.by_operator["ssd_prefill"] == 0:
            raise permanent("engine_mismatch", "the model never called the kernels' scan; is it a Mamba2 model?")
        if mode == "V0" and self.carried_scans:
            raise permanent(
                "engine_mismatch", f"mode V0 never carries a state, yet {self.carried_scans} scans began with one"
            )
        if mode == "V1" and long_prompts and not self.carried_scans:
            raise permanent("engine_mismatch", "mode V1 carries state between chunks, yet no scan began with one")
