"""A GPU that is not there: Triton's active driver for one architecture, good for compiling and nothing else."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase
from triton.runtime import driver

WARP = 32
"""Threads of a warp on every NVIDIA GPU."""


class AbsentGpu(DriverBase):  # type: ignore[misc]  # triton is untyped here
    """Answers what the compiler asks. Its device number is the architecture, so that kernels cache each apart."""

    def __init__(self, architecture: int) -> None:
        super().__init__()
        self.architecture = architecture

    @classmethod
    def is_active(cls) -> bool:
        return True

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", self.architecture, WARP)

    def get_current_device(self) -> int:
        return self.architecture

    def get_current_stream(self, device: int) -> int:
        return 0

    def map_python_to_cpp_type(self, ty: str) -> str:
        raise NotImplementedError(f"a launcher for {ty} is never built: no kernel starts on an absent GPU")

    def get_active_torch_device(self) -> Any:
        raise NotImplementedError("no tensor lies on an absent GPU")

    def get_benchmarker(self) -> Any:
        raise NotImplementedError("nothing can be timed on an absent GPU")


@contextmanager
def targeting(architecture: int) -> Iterator[None]:
    """Inside the block Triton compiles for compute capability `architecture`, e.g. 90 for sm_90."""
    before = driver._active
    driver.set_active(AbsentGpu(architecture))
    try:
        yield
    finally:
        driver._active = before
