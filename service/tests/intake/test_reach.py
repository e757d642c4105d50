"""Which lanes a change can reach, with and without an impact report."""

from pathlib import Path

from driftline.contracts.impact import ImpactView, LaneReach
from driftline.contracts.words import Layout
from driftline_service.intake.reach import unreachable_lanes
from driftline_service.lanes import read_lanes

KERNELS = "kernels/src/mamba2_varlen"
LANES = read_lanes(Path(__file__).parents[3] / "driftline.toml").all
ON_CPU = next(lane for lane in LANES if lane.name == "canary V0")
ON_VLLM = next(lane for lane in LANES if lane.name == "canary vllm V1")


def _impact(*lanes: LaneReach) -> ImpactView:
    return ImpactView(
        base="a" * 40, head="b" * 40, layout=Layout.MAMBA2_VARLEN, touched=[], models=[], operators=[],
        lanes=list(lanes), wide=[], unread=[], ci_files=0, ci_accuracy=[],
    )  # fmt: skip


def test_the_impact_report_decides_where_there_is_one() -> None:
    impact = _impact(LaneReach(lane="canary V0", reached=False, why="torch loads nothing of it"),
                     LaneReach(lane="canary vllm V1", reached=True))  # fmt: skip
    seen = unreachable_lanes([ON_CPU, ON_VLLM], impact, layout=Layout.MAMBA2_VARLEN, kernel_path=KERNELS)
    assert seen == {"canary V0": "torch loads nothing of it"}


def test_without_one_only_what_no_import_decides_is_ruled_out() -> None:
    seen = unreachable_lanes([ON_CPU, ON_VLLM], None, layout=Layout.MAMBA2_VARLEN, kernel_path=KERNELS)
    assert list(seen) == ["canary vllm V1"]
    assert seen["canary vllm V1"].startswith("vLLM serves Mamba2 with operators of its own")
    assert unreachable_lanes([ON_CPU, ON_VLLM], None, layout=Layout.VLLM, kernel_path="vllm") == {}
