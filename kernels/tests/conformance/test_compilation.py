"""What is read from ptxas, and what is recorded of a commit's launches."""

import subprocess
import sys
from pathlib import Path

from mamba2_conformance.compilation.report import resources

LOG = """ptxas info    : 11 bytes gmem
ptxas info    : Compiling entry function '_scan' for 'sm_90a'
ptxas info    : Function properties for _scan
    24 bytes stack frame, 16 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 168 registers, used 1 barriers, 24 bytes cumulative stack size
"""

RECORD = """
import sys
from pathlib import Path
from mamba2_conformance.adapters.layout import load_layout
from mamba2_conformance.compilation.compiler import plan
for one in plan(load_layout("mamba2_varlen", Path(sys.argv[1]))):
    print(one.kernel, "|", one.config, "|", one.error)
"""


def test_registers_and_spills_come_from_the_log() -> None:
    assert resources(LOG) == (168, 36)


def test_the_largest_function_counts_and_all_spills_do() -> None:
    assert resources(LOG + LOG.replace("168", "32")) == (168, 72)


def test_what_a_log_does_not_tell_is_unknown_not_zero() -> None:
    assert resources("") == (None, None)


def test_every_kernel_is_recorded_without_a_gpu_and_nothing_fails(kernels_folder: Path) -> None:
    command = [sys.executable, "-P", "-c", RECORD, str(kernels_folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200)
    rows = [[part.strip() for part in line.split("|")] for line in done.stdout.splitlines()]
    assert [row for row in rows if row[2]] == []
    assert len({row[0] for row in rows}) == 9
    assert len({(row[0], row[1]) for row in rows}) == len(rows)
