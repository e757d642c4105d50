"""What a Python entry would launch, found by running it: launches are written down instead of started.

So no signature is guessed, and a commit may launch what it likes. Nothing is compiled here.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from triton import knobs
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction

from mamba2_conformance.adapters.tuner import Tile


@dataclass(frozen=True, eq=False)
class Launch:
    """One kernel start that did not happen: the kernel and all it was given, compile options included.

    tile: of a tuner's candidates, in words; empty where no tuner chooses.
    """

    kernel: Any
    arguments: tuple[object, ...]
    options: dict[str, object]
    tile: str = ""

    @property
    def name(self) -> str:
        return str(self.kernel.__name__)


@contextmanager
def recorded() -> Iterator[list[Launch]]:
    """Launches made inside the block. A tuner's kernel is recorded once for each of its configurations."""
    launches: list[Launch] = []

    def record(kernel: Any, *arguments: object, grid: object, warmup: bool, **options: object) -> None:
        launches.append(Launch(kernel, arguments, options))

    def record_each(tuner: Any, *arguments: object, **options: object) -> None:
        for config in tuner.configs:
            before = len(launches)
            tuner.fn.run(*arguments, **{**options, **config.all_kwargs()})
            launches[before:] = [replace(launch, tile=str(Tile(config))) for launch in launches[before:]]

    patches = (patch.object(JITFunction, "run", record), patch.object(Autotuner, "run", record_each))
    with patches[0], patches[1], accepted_on_a_cpu():
        yield launches


@contextmanager
def accepted_on_a_cpu() -> Iterator[None]:
    """Entries refuse CPU tensors outside Triton's interpreter, which they know by its variable; Triton keeps its own
    setting, so that the recorded arguments are those of a real launch."""
    with patch.dict(os.environ):
        knobs.runtime.interpret = False
        os.environ["TRITON_INTERPRET"] = "1"
        try:
            yield
        finally:
            del knobs.runtime.interpret
