"""The build child: kernels compiled without a GPU, and what each costs."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from driftline.contracts.channel import Result

RunChild = Callable[..., Any]

KERNELS = Path(__file__).resolve().parents[3] / "kernels" / "src"


def test_every_kernel_compiles_and_tells_its_registers_spills_and_shared_memory(run_child: RunChild) -> None:
    ended = run_child("build", KERNELS, architectures=[90])
    assert ended.code == 0, ended.printed
    assert ended.lines[-1] == Result(lines=len(ended.builds))
    assert [(one.kernel, one.error) for one in ended.builds if not one.compiled] == []
    assert len({one.kernel for one in ended.builds}) == 10
    assert len({(one.kernel, one.config, one.arch) for one in ended.builds}) == len(ended.builds)
    assert {one.arch for one in ended.builds} == {"sm_90"}
    assert all(one.registers is not None and 8 <= one.registers <= 255 for one in ended.builds)
    assert all(one.spills is not None and one.spills >= 0 for one in ended.builds)
    [scan] = [one for one in ended.builds if "chunk_scan" in one.kernel and "from a state" in one.config]
    assert scan.shared_memory is not None
    assert 1024 < scan.shared_memory <= 227 * 1024


def test_a_kernel_that_does_not_compile_is_a_line_with_the_compiler_s_message(
    run_child: RunChild, kernels_copy: Path
) -> None:
    file = kernels_copy / "mamba2_varlen" / "triton_backend" / "norm.py"
    broken = file.read_text().replace("tl.sqrt", "tl.no_such_function").replace("tl.rsqrt", "tl.no_such_function")
    assert "no_such_function" in broken
    file.write_text(broken)
    ended = run_child("build", kernels_copy, architectures=[80])
    assert ended.code == 0, ended.printed
    [failed] = [one for one in ended.builds if not one.compiled]
    assert "norm" in failed.kernel
    assert "no_such_function" in failed.error
    assert (failed.registers, failed.spills, failed.shared_memory) == (None, None, None)


def test_a_commit_without_triton_kernels_is_unsupported(run_child: RunChild, kernels_copy: Path) -> None:
    shutil.rmtree(kernels_copy / "mamba2_varlen" / "triton_backend")
    ended = run_child("build", kernels_copy)
    assert (ended.code, ended.failure.kind, ended.failure.reason) == (1, "unsupported", "no_triton_kernels")


def test_kernels_that_do_not_import_are_a_failure_line(run_child: RunChild, kernels_copy: Path) -> None:
    (kernels_copy / "mamba2_varlen" / "__init__.py").write_text("import no_such_module\n")
    ended = run_child("build", kernels_copy)
    assert (ended.failure.kind, ended.failure.reason) == ("permanent", "kernels_do_not_import")
