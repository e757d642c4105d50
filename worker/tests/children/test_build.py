"""The build child: kernels compiled without a GPU, and what each costs."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from driftline.contracts.channel import Result

RunChild = Callable[..., Any]

KERNELS = Path(__file__).resolve().parents[3] / "kernels" / "src"


def test_every_kernel_compiles_and_tells_its_registers_spills_and_shared_memory(run_build: RunChild) -> None:
    ended = run_build(KERNELS, architectures=[90])
    assert ended.code == 0, ended.printed
    assert ended.lines[-1] == Result(lines=len(ended.builds))
    assert [(one.kernel, one.error) for one in ended.builds if not one.compiled] == []
    assert len({one.kernel for one in ended.builds}) == 11
    assert len({(one.kernel, one.config, one.arch) for one in ended.builds}) == len(ended.builds)
    assert {one.arch for one in ended.builds} == {"sm_90"}
    assert all(one.registers is not None and 8 <= one.registers <= 255 for one in ended.builds)
    assert all(one.spills is not None and one.spills >= 0 for one in ended.builds)
    [scan] = [one for one in ended.builds if "chunk_scan" in one.kernel and "from a state" in one.config]
    assert scan.shared_memory is not None
    assert 1024 < scan.shared_memory <= 227 * 1024


def test_a_kernel_that_does_not_compile_is_a_line_with_the_compiler_s_message(
    run_build: RunChild, kernels_copy: Path
) -> None:
    file = kernels_copy / "mamba2_varlen" / "triton_backend" / "norm.py"
    broken = file.read_text().replace("tl.sqrt", "tl.no_such_function").replace("tl.rsqrt", "tl.no_such_function")
    assert "no_such_function" in broken
    file.write_text(broken)
    ended = run_build(kernels_copy, architectures=[90])
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


ROOT = KERNELS.parents[1]
OWN = {"name": "own", "version": "3.6.0", "folder": None}
NEWER = {"name": "newer", "version": "3.9.0", "folder": str(ROOT / ".triton" / "3.9.0")}


def test_a_kernel_that_one_triton_refuses_is_named_with_its_message(run_build: RunChild, kernels_copy: Path) -> None:
    """`tl.squeeze` came after 3.6. The newer release is what `make triton-env` installs."""
    assert Path(str(NEWER["folder"])).is_dir(), "run `make triton-env` first"
    file = kernels_copy / "mamba2_varlen" / "triton_backend" / "norm.py"
    line = "    within = tl.arange(0, BLOCK)\n"
    assert file.read_text().count(line) == 1, "adapt the edit to the code"
    file.write_text(file.read_text().replace(line, f"{line}    tl.squeeze(tl.zeros((1, 8), tl.float32), 0)\n"))
    ended = run_build(kernels_copy, architectures=[90], tritons=[OWN, NEWER | {"architectures": [100]}])
    assert ended.code == 0, ended.printed
    assert {(one.triton, one.arch) for one in ended.builds} == {("3.6.0", "sm_90"), ("3.9.0", "sm_100")}
    assert [line.done for line in ended.lines if line.type == "progress" and line.phase == "compile"][-1] == len(
        ended.builds
    )
    [refused] = [one for one in ended.builds if not one.compiled]
    assert (refused.triton, refused.arch, "norm" in refused.kernel) == ("3.6.0", "sm_90", True)
    assert "squeeze" in refused.error
    under = [
        {(one.kernel, one.config) for one in ended.builds if one.triton == version} for version in ("3.6.0", "3.9.0")
    ]
    assert under[0] == under[1]
    told = next(line for line in ended.lines if line.type == "environment")
    assert told.recorded == {"Triton own": "compiled", "Triton newer": "compiled"}


def test_kernels_that_do_not_import_under_one_triton_are_refused_there(run_build: RunChild, kernels_copy: Path) -> None:
    assert Path(str(NEWER["folder"])).is_dir(), "run `make triton-env` first"
    file = kernels_copy / "mamba2_varlen" / "__init__.py"
    file.write_text(f"{file.read_text()}\nimport triton.language\ntriton.language.advance\n")  # it went after 3.6
    ended = run_build(kernels_copy, architectures=[90], tritons=[OWN, NEWER])
    assert ended.code == 0, ended.printed
    [refused] = [one for one in ended.builds if not one.compiled]
    assert (refused.triton, refused.arch) == ("3.9.0", "sm_90")
    assert "advance" in refused.error


def test_a_triton_that_is_not_there_or_another_is_told(run_build: RunChild, tmp_path: Path) -> None:
    absent = {"name": "absent", "version": "3.4.0", "folder": str(tmp_path / "nowhere")}
    fake = tmp_path / "triton"
    fake.mkdir()
    (fake / "__init__.py").write_text("__version__ = '3.3.0'\n")
    other = {"name": "other", "version": "3.5.0", "folder": str(tmp_path)}
    ended = run_build(KERNELS, architectures=[90], tritons=[OWN, absent, other])
    told = next(line for line in ended.lines if line.type == "environment").recorded
    assert told["Triton own"] == "compiled"
    assert told["Triton absent"] == "not asked: 3.4.0 is not on this worker; `make triton-env` puts it there"
    assert told["Triton other"].startswith(f"not asked: {tmp_path} holds Triton 3.3.0, not 3.5.0")
    assert {one.triton for one in ended.builds} == {"3.6.0"}


def test_a_kernel_that_ends_the_compiler_is_refused_and_the_rest_compile(
    run_child: RunChild, kernels_copy: Path
) -> None:
    file = kernels_copy / "mamba2_varlen" / "triton_backend" / "norm.py"
    crash = (
        "import ctypes\nfrom triton.compiler.code_generator import CodeGenerator as _C\n_visit = _C.visit_FunctionDef\n"
        "def visit(self, node):\n    ctypes.string_at(0) if node.name == '_norm_kernel' else None\n"
        "    return _visit(self, node)\n_C.visit_FunctionDef = visit\n"
    )
    file.write_text(f"{file.read_text()}\n{crash}")
    ended = run_child("build", kernels_copy, architectures=[90])
    assert ended.code == 0, ended.printed
    assert len(ended.builds) > 10
    refused = [one for one in ended.builds if not one.compiled]
    assert [("norm" in one.kernel, one.error.partition("\n")[0]) for one in refused] == [
        (True, "it ended the process (signal SIGSEGV)")
    ]
