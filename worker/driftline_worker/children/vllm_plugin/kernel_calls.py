"""Calls of the commit's kernels from inside an engine: each operator's first one reported, every exception given a name.

An engine is a process of its own. What it prints is all that is seen of its end, and the classifier of logs
(`vllm_engine/log_errors.py`) knows these two exceptions by their names.
"""

import json
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

import torch

from ..hf_engine.kernels_loader import serving_module
from .distribution import Call


class KernelError(Exception):
    """A kernel of the commit under test raised."""


class UnservedError(Exception):
    """vLLM asks for something that the kernels' package does not offer. The message names it, and what to change."""


class KernelCalls:
    """The kernels, the backend that serves them, and the file to which first calls are reported."""

    def __init__(self, kernels: ModuleType, backend: str, report: Path) -> None:
        self.kernels = kernels
        self.backend = backend
        self._report = report
        self._reported: set[str] = set()

    @contextmanager
    def running(self, operator: str, in_place_of: str) -> Iterator[None]:
        """One call of `operator`. Raises KernelError; memory shortage passes as it is."""
        try:
            yield
        except (UnservedError, MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            raise KernelError(f"{operator}: {in_one_line(error)}") from error
        if operator not in self._reported:
            self._reported.add(operator)
            self._tell(Call(operator, serving_module(self.kernels, operator, self.backend), in_place_of))

    def _tell(self, call: Call) -> None:
        """One write a line, so that several processes may share the file."""
        descriptor = os.open(self._report, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(descriptor, (json.dumps(asdict(call)) + "\n").encode())
        finally:
            os.close(descriptor)


def in_one_line(error: BaseException) -> str:
    """The exception, and the file and line that raised it, by the file's name only."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    said = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {said} ({Path(last.filename).name}:{last.lineno})"
