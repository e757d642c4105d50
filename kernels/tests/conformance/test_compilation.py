"""What is read from ptxas, and what is recorded of a commit's launches."""

import os
import shutil
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
for one in plan(load_layout(sys.argv[2], Path(sys.argv[1]))):
    print(one.kernel, "|", one.config, "|", one.error)
"""


def test_registers_and_spills_come_from_the_log() -> None:
    assert resources(LOG) == (168, 36)


def test_the_largest_function_counts_and_all_spills_do() -> None:
    assert resources(LOG + LOG.replace("168", "32")) == (168, 72)


def test_what_a_log_does_not_tell_is_unknown_not_zero() -> None:
    assert resources("") == (None, None)


def test_every_kernel_is_recorded_without_a_gpu_and_nothing_fails(kernels_folder: Path) -> None:
    rows = recorded(kernels_folder, "mamba2_varlen")
    assert [row for row in rows if row[2]] == []
    assert len({row[0] for row in rows}) == 11
    assert len({(row[0], row[1]) for row in rows}) == len(rows)


def test_every_candidate_of_a_tuner_is_recorded_once_and_named_by_its_tile(tmp_path: Path) -> None:
    ops = tmp_path / "ops"
    for part in ("every_era", "batch"):
        shutil.copytree(Path(__file__).parent / "vllm_layout" / part, ops, dirs_exist_ok=True)
    (ops / "__init__.py").touch()
    rows = [row for row in recorded(tmp_path, "vllm") if row[0] == "_chunk_scan_fwd_kernel"]
    tiles = [row[1].rpartition("tile ")[2] for row in rows]
    assert tiles[:2] == ["M32 w4 s3", "M256 w4 s3"], "both candidates of the scenario that compiles each"
    assert set(tiles[2:]) == {"M32 w4 s3"}, "else the one in force"
    assert len({row[1] for row in rows}) == len(rows)


def recorded(folder: Path, layout: str) -> list[list[str]]:
    command = [sys.executable, "-P", "-c", RECORD, str(folder), layout]
    compiling = {name: value for name, value in os.environ.items() if name != "TRITON_INTERPRET"}  # other tests set it
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=200, env=compiling)
    return [[part.strip() for part in line.split("|")] for line in done.stdout.splitlines()]
