"""Layout mamba2_varlen: our own kernels, changed file by file."""

from collections.abc import Callable
from pathlib import Path

import pytest
from driftline.contracts.impact import ImpactView
from driftline.contracts.lane import Lane
from driftline.git import Mirror
from driftline.impact.asked import bounded_impact
from driftline.report.impact_text import impact_sentence

from .conftest import PROJECT

FOLDER = "kernels/src/mamba2_varlen"
KERNELS = PROJECT / FOLDER


@pytest.fixture
def impact(
    commit: Callable[..., str], mirror: Callable[[], Mirror], lanes: tuple[Lane, ...]
) -> Callable[[str, str, str], ImpactView]:
    """Of replacing a text in one of our kernels' files."""

    def found(name: str, old: str, new: str) -> ImpactView:
        texts = {str(path.relative_to(KERNELS)): path.read_text() for path in KERNELS.rglob("*.py")}
        assert old in texts[name]
        base = commit({f"{FOLDER}/{path}": text for path, text in texts.items()})
        head = commit({f"{FOLDER}/{name}": texts[name].replace(old, new)})
        opened = mirror()
        kernels = opened.find_kernels(head)
        assert kernels is not None
        triton = lanes[0].model_copy(update={"name": "triton lane", "backend": "triton"})
        view = bounded_impact(opened, base, head, kernels, [*lanes, triton])
        assert isinstance(view, ImpactView), view
        return view

    return found


def _reached(view: ImpactView) -> dict[str, bool]:
    return {lane.lane: lane.reached for lane in view.lanes}


def test_a_backend_is_seen_by_its_own_lanes(impact: Callable[[str, str, str], ImpactView]) -> None:
    view = impact("triton_backend/norm.py", "def rms_norm_gated(", "CHANGED = 1\n\n\ndef rms_norm_gated(")
    assert (_reached(view)["canary V0"], _reached(view)["triton lane"]) == (False, True)
    why = next(lane.why for lane in view.lanes if lane.lane == "canary V0")
    assert why == "torch loads nothing of triton_backend"


def test_operators_are_found_through_the_dispatch(impact: Callable[[str, str, str], ImpactView]) -> None:
    view = impact("torch_backend/norm.py", "def rms_norm_gated(arguments", "def rms_norm_gated(given")
    assert [(each.operator, each.backends) for each in view.operators] == [("rms_norm_gated", ["torch"])]
    assert impact_sentence(view).startswith(
        "touches norm: rms_norm_gated (torch) is affected; the repository has no CI"
    )
    assert _reached(view)["canary V0"]


def test_what_all_share_reaches_all(impact: Callable[[str, str, str], ImpactView]) -> None:
    view = impact("metadata.py", "import", "import math\nimport")
    assert all(
        reached
        for lane, reached in _reached(view).items()
        if "vllm" not in lane and lane in ("canary V0", "triton lane")
    )


def test_ours_is_the_tree_that_the_rule_knows() -> None:
    """The dispatch is by name: these folders and that function are what the analysis looks for."""
    from driftline.impact.varlen import BACKENDS, DISPATCH, OPERATORS

    assert all((KERNELS / folder).is_dir() for folder in BACKENDS.values())
    assert f"{DISPATCH}(backend, " in (Path(KERNELS) / f"{OPERATORS}.py").read_text()
