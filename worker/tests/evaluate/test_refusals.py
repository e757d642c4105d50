"""What cannot be evaluated ends in one failure line that says why; run in this process, through a real pipe."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from driftline_worker.children.evaluate import main

BOOM = "def {0}(*args, **options):\n    raise RuntimeError('tile does not divide')"


@pytest.fixture
def ending(received: Any, unpatched: None, tmp_path: Path) -> Callable[[dict[str, Any]], Any]:
    """Run the child's main on a spec; its last line, after checks that hold for every ending."""

    def run(spec: dict[str, Any]) -> Any:
        file = tmp_path / "spec.json"
        file.write_text(json.dumps(spec))
        codes: list[int] = []
        lines = received(lambda fd: codes.append(main(["--spec", str(file), "--channel-fd", str(fd)])))
        assert lines[0].type == "hello"
        assert codes == [1]
        assert lines[-1].type == "failure"
        assert not any(line.type in ("scores", "result") for line in lines)
        return lines[-1]

    return run


@pytest.mark.parametrize(
    "operator",
    ["ssd_prefill", "causal_conv1d_prefill", "causal_conv1d_update", "selective_state_update", "build_metadata"],
)
def test_a_kernel_that_raises(assets: Any, ending: Any, changed_kernels: Any, operator: str) -> None:
    last = ending(assets.spec(import_dir=str(changed_kernels(BOOM.format(operator)))))
    assert (last.kind, last.reason) == ("permanent", "kernel_crashed")
    assert operator in last.message
    assert "tile does not divide" in last.message
    assert "__init__.py" in last.message


def test_kernels_that_exit_are_a_crash_too(assets: Any, ending: Any, changed_kernels: Any) -> None:
    last = ending(assets.spec(import_dir=str(changed_kernels("def ssd_prefill(*a, **k):\n    raise SystemExit(0)"))))
    assert last.reason == "kernel_crashed"


@pytest.mark.parametrize(
    ("code", "told"), [("import no_such_module", "no_such_module"), ("def (", "SyntaxError"), ("raise SystemExit", "")]
)
def test_kernels_that_do_not_import(assets: Any, ending: Any, changed_kernels: Any, code: str, told: str) -> None:
    last = ending(assets.spec(import_dir=str(changed_kernels(code))))
    assert (last.kind, last.reason) == ("permanent", "kernels_do_not_import")
    assert told in last.message


def test_a_commit_without_the_package_does_not_get_the_installed_one(assets: Any, ending: Any, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    last = ending(assets.spec(import_dir=str(tmp_path / "empty")))
    assert last.reason == "kernels_do_not_import"


def test_kernels_that_lack_an_operator(assets: Any, ending: Any, changed_kernels: Any) -> None:
    last = ending(assets.spec(import_dir=str(changed_kernels("del selective_state_update"))))
    assert (last.kind, last.reason) == ("permanent", "kernels_incomplete")
    assert "selective_state_update" in last.message


def test_a_backend_that_the_commit_does_not_have(assets: Any, ending: Any) -> None:
    spec = assets.spec()
    spec["lane"]["backend"] = "cuda"
    last = ending(spec)
    assert last.reason == "kernel_crashed"
    assert "cuda" in last.message


def test_a_model_that_does_not_load(assets: Any, ending: Any) -> None:
    last = ending(assets.spec(model_path=str(assets.folder)))
    assert (last.kind, last.reason) == ("permanent", "model_unloadable")


def test_a_gpu_lane_where_there_is_no_gpu(assets: Any, ending: Any) -> None:
    spec = assets.spec()
    spec["lane"]["gpu_type"] = "H100"
    last = ending(spec)
    assert (last.kind, last.reason) == ("permanent", "no_gpu")


def test_a_task_of_another_name(assets: Any, ending: Any) -> None:
    spec = assets.spec()
    spec["lane"]["task"]["name"] = "gsm8k"
    last = ending(spec)
    assert last.reason == "task_invalid"
    assert "'gsm8k'" in last.message


def test_a_spec_that_is_no_json(received: Any, tmp_path: Path) -> None:
    (tmp_path / "spec.json").write_text("{")
    lines = received(lambda fd: main(["--spec", str(tmp_path / "spec.json"), "--channel-fd", str(fd)]))
    assert [line.type for line in lines] == ["hello", "failure"]
    assert lines[-1].reason == "bad_spec"
