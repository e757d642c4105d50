"""Tile candidates: each one gives the same numbers, pins hold only inside their block, and all can be compiled for a
GPU."""

import subprocess
import sys
from pathlib import Path

import mamba2_varlen as m2
import pytest
import torch
from mamba2_varlen.triton_backend.tiles import CANDIDATES, CHOICES, Tile, pin_tiles, tile_for

SCAN_TILES = [(name, tile) for name, tiles in CANDIDATES.items() if name.startswith("ssd_") for tile in tiles[1:]]


@pytest.mark.parametrize(("name", "tile"), SCAN_TILES, ids=str)
def test_every_scan_tile_equals_reference(scan_case, assert_close, name: str, tile: Tile) -> None:
    case = scan_case((40, 70), sizes=(2, 8, 1, 16))
    with pin_tiles(name, tile):
        actual = case.run("triton", chunk_size=128)
    expected = case.run("reference", chunk_size=128)
    assert_close(actual.out, expected.out)
    assert_close(actual.final_states, expected.final_states)


@pytest.mark.parametrize("tile", CANDIDATES["conv_prefill"], ids=str)
def test_every_convolution_tile_equals_reference(random_tensor, assert_close, tile: Tile) -> None:
    x, weight = random_tensor(20, 300), random_tensor(300, 4)
    metadata = m2.build_metadata([0, 18, 20], chunk_size=64, device=x.device)
    with pin_tiles("conv_prefill", tile):
        actual = m2.causal_conv1d_prefill(x, weight, metadata=metadata, backend="triton")
    assert_close(actual.out, m2.causal_conv1d_prefill(x, weight, metadata=metadata, backend="reference").out)


def test_choices_are_candidates_that_cover_every_size_and_yield_to_pins() -> None:
    for kernel, choices in CHOICES.items():
        assert {choice.tile for choice in choices} <= set(CANDIDATES[kernel])
        bounds = [choice.up_to for choice in choices]
        assert bounds == sorted(bounds)
        assert bounds[-1] == float("inf")
    assert tile_for("ssu", 2) is CHOICES["ssu"][0].tile
    assert tile_for("ssu", 4) is CHOICES["ssu"][1].tile
    with pin_tiles("ssu", CANDIDATES["ssu"][2]):
        assert tile_for("ssu", 4) is CANDIDATES["ssu"][2]


def test_pins_nest_and_end() -> None:
    first, second = CANDIDATES["ssu"][:2]
    with pin_tiles("ssu", second), pin_tiles("norm", CANDIDATES["norm"][1]):
        assert tile_for("ssu", 4) is second
    assert tile_for("ssu", 4) is first


def test_pins_refuse_unknown_kernels_and_blocks() -> None:
    with (
        pytest.raises(ValueError, match=r"kernel_name must be one of .*'scan'"),
        pin_tiles("scan", CANDIDATES["ssu"][0]),
    ):
        pass
    with (
        pytest.raises(ValueError, match=r"tile of ssu must set .*BLOCK_P.*BLOCK"),
        pin_tiles("ssu", Tile((("BLOCK", 4),))),
    ):
        pass


# A fresh process: the interpreter this suite runs in replaces the compiler.
COMPILE = """
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from mamba2_varlen.triton_backend.aot import specializations
from mamba2_varlen.triton_backend.tiles import CANDIDATES
specs = specializations()
assert {spec.kernel for spec in specs} == set(CANDIDATES)
for spec in {spec.kernel: spec for spec in reversed(specs)}.values():
    source = ASTSource(spec.function, spec.signature, spec.constexprs, spec.attributes)
    options = {"num_warps": spec.num_warps, "num_stages": spec.num_stages}
    for arch, shared in ((80, 163 << 10), (90, 227 << 10), (100, 227 << 10)):
        compiled = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
        assert compiled.metadata.shared <= shared, (spec.kernel, arch, compiled.metadata.shared)
"""


def test_every_kernel_compiles_ahead_of_time_for_three_targets(tmp_path) -> None:
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TRITON_CACHE_DIR": str(tmp_path / "triton")}
    environment["PYTHONPATH"] = str(Path(m2.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-P", "-c", COMPILE], env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_importing_the_package_imports_no_triton() -> None:
    # torch itself may import Triton; what this package adds is asked here.
    code = """
import sys, torch
before = "triton" in sys.modules
import mamba2_varlen
mamba2_varlen.available_backends()
assert before or "triton" not in sys.modules
"""
    assert subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, timeout=120).returncode == 0


def test_auto_is_torch_on_the_cpu(scan_case) -> None:
    case = scan_case((9,))
    if case.tensors[0].is_cpu:
        assert torch.equal(case.run("auto").out, case.run("torch").out)
