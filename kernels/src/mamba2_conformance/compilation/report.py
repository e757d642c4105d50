"""What compiling one kernel for one architecture gave."""

import re
from dataclasses import dataclass

CONFIG_CHARACTERS = 500
"""Longest configuration text, as the worker's channel takes it."""

REGISTERS = re.compile(r"Used (\d+) registers")
SPILLS = re.compile(r"(\d+) bytes spill stores, (\d+) bytes spill loads")


@dataclass(frozen=True)
class KernelBuild:
    """registers: of a thread; spills: bytes of spill stores and loads; shared_memory: bytes of a block."""

    kernel: str
    config: str
    arch: str
    compiled: bool
    registers: int | None = None
    spills: int | None = None
    shared_memory: int | None = None
    error: str = ""


def resources(ptxas_log: str) -> tuple[int | None, int | None]:
    """Registers and spilled bytes in what `ptxas -v` prints: the largest use of any function, all spills together.

    None for what the log does not tell: unknown is not zero.
    """
    registers = [int(count) for count in REGISTERS.findall(ptxas_log)]
    spills = [int(stores) + int(loads) for stores, loads in SPILLS.findall(ptxas_log)]
    return max(registers, default=None), sum(spills) if spills else None
