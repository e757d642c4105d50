"""Layout vllm: which models a change reaches, through real git and in the limited process."""

from collections.abc import Callable

import pytest
from driftline.contracts.impact import ImpactView
from driftline.contracts.lane import Lane
from driftline.git import Mirror
from driftline.impact.asked import bounded_impact
from driftline.report.impact_text import impact_lines, impact_sentence

from .conftest import MODELS, OPS, VLLM

Impact = Callable[[dict[str, str | None]], ImpactView]


@pytest.fixture
def impact(commit: Callable[..., str], mirror: Callable[[], Mirror], lanes: tuple[Lane, ...]) -> Impact:
    """The impact of some files' change on the small vLLM."""

    def found(files: dict[str, str | None]) -> ImpactView:
        base, head = commit(VLLM), commit(files)
        opened = mirror()
        kernels = opened.find_kernels(head)
        assert kernels is not None
        view = bounded_impact(opened, base, head, kernels, lanes)
        assert isinstance(view, ImpactView), view
        return view

    return found


def _changed(path: str, old: str, new: str) -> dict[str, str | None]:
    assert old in VLLM[path]
    return {path: VLLM[path].replace(old, new)}


def test_a_kernel_is_followed_to_the_models_that_run_it(impact: Impact) -> None:
    view = impact(_changed(f"{OPS}/ssd_chunk_scan.py", "x * TILE", "x + TILE"))
    assert [each.definitions for each in view.touched] == [["_chunk_scan_fwd"]]
    assert [model.name for model in view.models] == ["granitemoehybrid", "nano_vl", "nemotron_h"]
    assert impact_sentence(view) == (
        "touches ssd_chunk_scan: granitemoehybrid, nano_vl, nemotron_h are affected; "
        "your CI runs no accuracy test for any of them"
    )
    assert {"granite-4.0-tiny V1", "granite-4.0-tiny V0"} <= set(view.models[0].lanes)
    assert "plamo2 V1" not in view.models[0].lanes


def test_definitions_of_one_file_are_told_apart(impact: Impact) -> None:
    view = impact(_changed(f"{OPS}/mamba_ssm.py", "return x\n", "return x + 0\n"))
    assert [model.name for model in view.models] == ["mamba"]
    reached = {lane.lane: lane for lane in view.lanes}
    assert not reached["granite-4.0-tiny V1"].reached
    assert "GraniteMoeHybridForCausalLM imports" in reached["granite-4.0-tiny V1"].why
    assert "granite-4.0-tiny V1 cannot see this change" in "\n".join(impact_lines(view))


def test_a_comment_is_no_change_of_code(impact: Impact) -> None:
    view = impact(_changed(f"{OPS}/ssd_chunk_scan.py", "TILE = 64", "# tuned\nTILE = 64"))
    assert (view.models, [each.definitions for each in view.touched]) == ([], [[]])
    assert impact_sentence(view) == "touches no code that a model runs"


def test_a_constant_and_a_removed_definition_are_changes(impact: Impact) -> None:
    view = impact(_changed(f"{OPS}/ssd_chunk_scan.py", "TILE = 64\n", "") | {"docs/page.md": "TILE"})
    assert view.touched[0].definitions == ["TILE"]
    assert "granitemoehybrid" in [model.name for model in view.models]


def test_a_deleted_file_reaches_those_who_import_it(impact: Impact) -> None:
    view = impact({f"{OPS}/ssd_chunk_scan.py": None})
    assert view.touched[0].deleted
    assert [model.name for model in view.models] == ["granitemoehybrid", "nano_vl", "nemotron_h"]


def test_what_the_whole_engine_runs_reaches_every_lane(impact: Impact) -> None:
    view = impact({"vllm/config.py": "SEED = 1\n", "csrc/a.cu": "int x;", "docs/a.md": "words"})
    assert view.wide == ["csrc/a.cu", "vllm/config.py"]
    assert all(lane.reached for lane in view.lanes)
    assert impact_sentence(view).startswith("touches a.cu, config.py: every model may be affected; ")


def test_a_model_of_which_ci_asks_the_accuracy_is_named_with_its_place(impact: Impact) -> None:
    view = impact(_changed(f"{MODELS}/qwen3_next.py", "load =", "loader ="))
    (model,) = view.models
    (test,) = model.tests
    assert (test.model, test.path, test.line, test.sure) == (
        "Qwen/Qwen3-Next-80B-A3B", "tests/evals/gsm8k/configs/Qwen3.yaml", 1, True,
    )  # fmt: skip
    assert impact_sentence(view).endswith("your CI has an accuracy test for qwen3_next")


def test_a_name_that_is_only_alike_is_said_to_be_so(impact: Impact) -> None:
    added = {"tests/evals/gsm8k/configs/models-small.txt": "Nano.yaml\n",
             "tests/evals/gsm8k/configs/Nano.yaml": 'model_name: "nvidia/NVIDIA-Nemotron-3-Nano-30B"\n'}  # fmt: skip
    view = impact(_changed(f"{OPS}/ssd_chunk_scan.py", "x * TILE", "x") | added)
    assert [(model.name, [test.sure for test in model.tests]) for model in view.models] == [
        ("granitemoehybrid", []), ("nano_vl", []), ("nemotron_h", [False]),
    ]  # fmt: skip
    assert impact_sentence(view).endswith("your CI may have one for nemotron_h, none for granitemoehybrid, nano_vl")


@pytest.mark.parametrize(
    "hostile", ["(" * 100_000, "-" * 200_000 + "1", "x = " + "1+" * 200_000 + "1", "x\0y", "def f(:\n"]
)
def test_hostile_sources_end_nothing_and_rule_nothing_out(impact: Impact, hostile: str) -> None:
    view = impact({f"{OPS}/ssd_chunk_scan.py": hostile})
    assert view.unread == [f"{OPS}/ssd_chunk_scan.py"]
    assert all(lane.reached for lane in view.lanes)
