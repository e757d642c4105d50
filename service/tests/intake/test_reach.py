"""Which lanes a change can reach."""

from pathlib import Path, PurePosixPath

import pytest
from driftline.contracts.words import Layout
from driftline_service.intake.reach import unreachable_lanes
from driftline_service.lanes import read_lanes

KERNELS = "kernels/src/mamba2_varlen"
LANE = read_lanes(Path(__file__).parents[3] / "driftline.toml").all[0]


def _reasons(*paths: str, layout: Layout = Layout.MAMBA2_VARLEN, backend: str = "torch") -> dict[str, str]:
    lane = LANE.model_copy(update={"backend": backend})
    return unreachable_lanes([lane], [PurePosixPath(path) for path in paths], layout=layout, kernel_path=KERNELS)


def test_a_change_of_triton_alone_is_not_seen_by_a_torch_lane() -> None:
    seen = _reasons(f"{KERNELS}/triton_backend/ssd.py", "docs/page.md")
    assert seen == {"canary V0": "torch loads nothing of triton_backend"}


@pytest.mark.parametrize(
    "paths",
    [
        (f"{KERNELS}/torch_backend/ssd.py",),
        (f"{KERNELS}/triton_backend/ssd.py", f"{KERNELS}/torch_backend/ssd.py"),
        (f"{KERNELS}/triton_backend/ssd.py", f"{KERNELS}/metadata.py"),
        ("README.md",),
        (),
    ],
)
def test_any_other_change_may_reach_it(paths: tuple[str, ...]) -> None:
    assert _reasons(*paths) == {}


def test_a_vllm_lane_sees_no_kernels_but_vllms_own() -> None:
    lane = read_lanes(Path(__file__).parents[3] / "driftline.toml").named("canary vllm V1")
    assert lane is not None
    changed = [PurePosixPath(f"{KERNELS}/torch_backend/ssd.py")]
    seen = unreachable_lanes([LANE, lane], changed, layout=Layout.MAMBA2_VARLEN, kernel_path=KERNELS)
    assert list(seen) == ["canary vllm V1"]
    assert seen["canary vllm V1"].startswith("vLLM serves Mamba2 with operators of its own")
    assert unreachable_lanes([lane], changed, layout=Layout.VLLM, kernel_path="vllm") == {}


def test_triton_lanes_and_other_layouts_are_never_ruled_out() -> None:
    assert _reasons(f"{KERNELS}/torch_backend/ssd.py", backend="triton") == {}
    assert _reasons(f"{KERNELS}/triton_backend/ssd.py", layout=Layout.VLLM) == {}
