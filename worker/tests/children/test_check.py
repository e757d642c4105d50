"""The kernel check child, from its command line to its last line."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from driftline.contracts.channel import MAX_LINE_BYTES, Case, CheckSummary, Progress, Result

RunChild = Callable[..., Any]

REFUSED = ("chunk_size/refused", "convolution/width_")
"""Refused before any backend is asked."""

KERNELS = Path(__file__).resolve().parents[3] / "kernels" / "src"


@pytest.fixture(scope="module")
def whole(run_child: RunChild) -> Any:
    """What the check says of the kernels of this work tree in torch. Of both backends it is asked in tests/test_end_to_end.py,
    where Triton's interpreter takes its twenty seconds anyway."""
    return run_child("check", KERNELS, backends=["torch"])


def test_the_kernels_of_this_work_tree_pass(whole: Any) -> None:
    assert whole.code == 0, whole.printed
    assert whole.types[:3] == ["hello", "progress", "check_summary"]
    assert whole.lines[2] == CheckSummary(layout="mamba2_varlen", era="metadata", device="cpu", backends=["torch"])
    assert whole.lines[-1] == Result(lines=len(whole.cases))
    assert [(case.name, case.backend, case.message) for case in whole.cases if not case.passed] == []
    assert len({case.name for case in whole.cases}) == len(whole.cases)
    assert all(case.max_abs_err is not None for case in whole.cases)


def test_progress_runs_from_nothing_to_everything(whole: Any) -> None:
    progress = [line for line in whole.lines if isinstance(line, Progress)]
    total = len(whole.cases)
    told = [(line.phase, line.done, line.total) for line in progress]
    assert told == [("import", 0, 1), *(("check", n, total) for n in range(total + 1))]


def test_a_wrong_kernel_is_a_failed_case_and_the_child_still_succeeds(run_child: RunChild, kernels_copy: Path) -> None:
    file = kernels_copy / "mamba2_varlen" / "torch_backend" / "norm.py"
    file.write_text(file.read_text().replace("def rms_norm_gated", "def rms_norm_lost"))
    ended = run_child("check", kernels_copy, backends=["torch"])
    assert ended.code == 0
    wrong = [case for case in ended.cases if not case.passed]
    assert {case.name.split("/")[0] for case in wrong} == {"gated_norm"}
    assert all(case.max_abs_err is None and "AttributeError" in case.message for case in wrong)


def test_the_check_is_never_taken_from_the_folder_under_test(run_child: RunChild, kernels_copy: Path) -> None:
    for name in ("mamba2_conformance", "numpy"):
        (kernels_copy / name).mkdir()
        (kernels_copy / name / "__init__.py").write_text("raise SystemExit('forged')\n")
    ended = run_child("check", kernels_copy, backends=["torch"])
    assert ended.code == 0, ended.printed
    assert all(case.passed for case in ended.cases)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import no_such_module\n", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("def broken(:\n", "SyntaxError"),
        ("raise SystemExit(0)\n", "SystemExit: 0"),
    ],
)
def test_kernels_that_do_not_import_are_a_failure_line_not_a_traceback(
    run_child: RunChild, kernels_copy: Path, source: str, message: str
) -> None:
    (kernels_copy / "mamba2_varlen" / "__init__.py").write_text(source)
    ended = run_child("check", kernels_copy)
    assert ended.code == 1
    assert ended.types == ["hello", "progress", "failure"]
    assert (ended.failure.kind, ended.failure.reason) == ("permanent", "kernels_do_not_import")
    assert message in ended.failure.message
    assert "Traceback" not in ended.printed


def test_a_backend_that_does_not_import_fails_its_cases_only(run_child: RunChild, kernels_copy: Path) -> None:
    (kernels_copy / "mamba2_varlen" / "triton_backend" / "tiles.py").write_text(
        "raise RuntimeError('no tiles today')\n"
    )
    ended = run_child("check", kernels_copy, backends=["torch", "triton"])
    assert ended.code == 0, ended.printed
    by_backend = {name: [case for case in ended.cases if case.backend == name] for name in ("torch", "triton")}
    assert all(case.passed for case in by_backend["torch"])
    scans = [case for case in by_backend["triton"] if not case.name.startswith(REFUSED)]
    assert scans
    assert [case.name for case in scans if case.passed] == []
    assert "no tiles today" in scans[0].message


def test_a_folder_without_kernels_says_so(run_child: RunChild, tmp_path: Path) -> None:
    ended = run_child("check", tmp_path)
    assert (ended.code, ended.failure.kind, ended.failure.reason) == (1, "permanent", "no_kernels")
    assert "mamba2_varlen" in ended.failure.message


def test_a_commit_with_none_of_the_backends_is_unsupported(run_child: RunChild, kernels_copy: Path) -> None:
    shutil.rmtree(kernels_copy / "mamba2_varlen" / "triton_backend")
    ended = run_child("check", kernels_copy, backends=["triton"])
    assert (ended.code, ended.failure.kind, ended.failure.reason) == (1, "unsupported", "no_backend")


@pytest.mark.parametrize(
    ("spec", "reason", "named"),
    [
        ({"layout": "tensorrt"}, "unknown_layout", "'tensorrt'"),
        ({"backends": "triton"}, "bad_spec", "backends"),
        ({"backends": []}, "bad_spec", "backends"),
        ({"import_dir": 3}, "bad_spec", "import_dir"),
        ({"processes": 0}, "bad_spec", "processes"),
    ],
)
def test_a_spec_that_cannot_be_followed_is_refused_by_name(
    run_child: RunChild, spec: dict[str, object], reason: str, named: str
) -> None:
    ended = run_child("check", KERNELS, **spec)
    assert [kind for kind in ended.types if kind != "progress"] == ["hello", "failure"]
    assert ended.failure.reason == reason
    assert named in ended.failure.message


def test_an_error_with_a_lone_surrogate_still_arrives(run_child: RunChild, kernels_copy: Path) -> None:
    (kernels_copy / "mamba2_varlen" / "torch_backend" / "norm.py").write_text(
        "raise ValueError(chr(0xD800) + 'x' * 9000)\n"
    )
    ended = run_child("check", kernels_copy, backends=["torch"])
    wrong: list[Case] = [case for case in ended.cases if not case.passed]
    assert {case.name.split("/")[0] for case in wrong} == {"gated_norm"}
    assert "\ufffdxxx" in wrong[0].message


def test_a_case_that_ends_the_process_fails_by_name_and_the_rest_go_on(
    run_child: RunChild, whole: Any, kernels_copy: Path
) -> None:
    file = kernels_copy / "mamba2_varlen" / "torch_backend" / "norm.py"
    end = "    if arguments.group_size == 32:\n        import ctypes\n        ctypes.string_at(0)\n"
    text, line = file.read_text(), "    grouped = "
    assert text.count(line) == 1, "adapt the edit to the code"
    file.write_text(text.replace(line, end + line))
    ended = run_child("check", kernels_copy, backends=["torch"])
    assert (ended.code, ended.types.count("check_summary")) == (0, 1), ended.printed
    assert [case.name for case in ended.cases] == [case.name for case in whole.cases]
    failed = [case for case in ended.cases if not case.passed]
    assert failed
    assert {case.name.split("/")[0] for case in failed} == {"gated_norm"}
    assert len(failed) < sum(case.name.startswith("gated_norm/") for case in ended.cases)
    assert failed[0].message.startswith("it ended the process (signal SIGSEGV)")
    assert ended.lines[-1] == Result(lines=len(ended.cases))


def test_several_processes_tell_the_same_in_the_same_order(run_child: RunChild, kernels_copy: Path) -> None:
    file = kernels_copy / "mamba2_varlen" / "torch_backend" / "norm.py"
    end = "    if arguments.group_size == 32:\n        import os\n        os._exit(7)\n"
    file.write_text(file.read_text().replace("    grouped = ", end + "    grouped = "))
    alone = run_child("check", kernels_copy, backends=["torch"])
    together = run_child("check", kernels_copy, backends=["torch"], processes=3)
    assert together.code == 0, together.printed
    assert together.cases == alone.cases
    assert {case.message for case in together.cases if not case.passed} == {"it ended the process (exit code 7)"}
    assert together.lines[-1] == Result(lines=len(alone.cases))
    told = [line.done for line in together.lines if isinstance(line, Progress) and line.phase == "check"]
    assert (told[-1], told) == (len(alone.cases), sorted(told))


def test_several_processes_that_cannot_import_the_kernels_say_so_once(run_child: RunChild, kernels_copy: Path) -> None:
    (kernels_copy / "mamba2_varlen" / "__init__.py").write_text("import no_such_module\n")
    ended = run_child("check", kernels_copy, processes=3)
    assert (ended.code, ended.types.count("failure")) == (1, 1)
    assert ended.failure.reason == "kernels_do_not_import"


def test_kernels_that_end_every_process_are_asked_a_few_times_only(run_child: RunChild, kernels_copy: Path) -> None:
    init = kernels_copy / "mamba2_varlen" / "__init__.py"
    names = "x, dt, A, B, C, *, metadata, D, z, dt_bias, dt_softplus, dt_limit, initial_states, state_dtype, out, "
    body = "return_intermediate_states, backend=None): __import__('os')._exit(0)\n"
    init.write_text(f"{init.read_text()}\ndef ssd_prefill({names}{body}")
    ended = run_child("check", kernels_copy, backends=["torch"])
    assert ended.code == 0, ended.printed
    said = [case.message.partition("\n")[0] for case in ended.cases if not case.passed]
    assert said[:10] == ["it ended the process (exit code 0)"] * 10
    assert set(said[10:]) == {"not asked: too many before it ended their process"}


def test_a_process_that_ends_before_any_case_is_no_failed_case(run_child: RunChild, kernels_copy: Path) -> None:
    (kernels_copy / "mamba2_varlen" / "__init__.py").write_text("import os\nos.kill(os.getpid(), 11)\n")
    ended = run_child("check", kernels_copy)
    assert (ended.code, ended.types) == (-11, ["hello", "progress"])


CHANNEL = "import os, sys\nchannel = int(sys.argv[sys.argv.index('--channel-fd') + 1])\n"


def test_a_line_without_an_end_reaches_the_worker_as_it_is(
    start_child: Any, kernels_copy: Path, tmp_path: Path
) -> None:
    package = kernels_copy / "mamba2_varlen" / "__init__.py"
    package.write_text(CHANNEL + "while True:\n    os.write(channel, b'z' * 65536)\n")
    with start_child("check", kernels_copy, tmp_path) as (_, pipe):
        taken = b""
        while len(taken) < 3 * MAX_LINE_BYTES and (data := pipe.read1(1 << 16)):
            taken += data
    lines = taken.split(b"\n")
    assert [json.loads(line)["type"] for line in lines[:-1]] == ["hello", "progress"]
    assert set(lines[-1]) == {ord("z")}
    assert len(lines[-1]) > MAX_LINE_BYTES


@pytest.mark.parametrize(
    "forged",
    [b"nonsense", b"[1]", b"{}", b'{"type":["case"]}', b'{"type":"begin","index":0}', b'{"type":"failure","kind":1}'],
)
def test_what_is_no_line_goes_on_to_be_judged(run_raw: RunChild, kernels_copy: Path, forged: bytes) -> None:
    package = kernels_copy / "mamba2_varlen" / "__init__.py"
    package.write_text(CHANNEL + f"os.write(channel, {forged!r} + b'\\n')\n" + package.read_text())
    lines = run_raw("check", kernels_copy, backends=["torch"])
    assert lines.count(forged) == 1
    assert json.loads(lines[-1])["type"] == "result"


def test_a_forged_place_does_not_start_the_parts_again_for_ever(run_raw: RunChild, kernels_copy: Path) -> None:
    package = kernels_copy / "mamba2_varlen" / "__init__.py"
    begin = b'{"type":"begin","index":-1,"told":"message","line":{"type":"case"}}\n'
    package.write_text(CHANNEL + f"os.write(channel, {begin!r})\nos._exit(3)\n")
    lines = run_raw("check", kernels_copy, backends=["torch"])
    assert [json.loads(line)["type"] for line in lines] == ["hello", "progress"]
