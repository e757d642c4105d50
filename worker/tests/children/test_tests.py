"""The tests child: a repository's own tests, of which some fail, hang, flood or end their process."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from driftline.contracts.channel import LINE, Failure, KernelTest, Tolerance

RunSuite = Callable[..., Any]

ROOT = Path(__file__).resolve().parents[3]
EVAL_PYTHON = ROOT / ".venv-eval" / "bin" / "python"
CHILDREN = ROOT / "worker" / "driftline_worker" / "children"


@pytest.fixture
def run_suite(tmp_path: Path) -> RunSuite:
    """Write files into a tree, run the child on its `tests`, and give its lines."""

    def run(files: dict[str, str], python: Path = EVAL_PYTHON, **spec: object) -> list[Any]:
        tree, working = tmp_path / "tree", tmp_path / "work"
        working.mkdir()
        for name, text in files.items():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).write_text(text)
        given = {"tree": str(tree), "paths": ["tests"], "arguments": [], "import_from": ["src"], **spec}
        (tmp_path / "spec.json").write_text(json.dumps(given))
        reading, writing = os.pipe()
        command = [str(python), "-P", "-s", str(CHILDREN / "tests.py"), "--spec", str(tmp_path / "spec.json")]
        environment = {"PATH": os.environ["PATH"], "HOME": str(working)}
        with os.fdopen(reading, "rb") as pipe:
            process = subprocess.Popen(
                [*command, "--channel-fd", str(writing)], cwd=working, env=environment, pass_fds=[writing]
            )
            os.close(writing)
            lines = [LINE.validate_json(line) for line in pipe]
            process.wait(timeout=60)
        return lines

    return run


def outcomes(lines: list[Any]) -> dict[str, str]:
    return {line.node_id.rpartition("::")[2]: line.outcome.value for line in lines if isinstance(line, KernelTest)}


MIXED = """
import os, signal, time, warnings
import pytest
from kernels_here import answer

def test_good(): assert answer() == 42
def test_bad(): assert answer() == 41, "a wrong answer"
def test_dies(): os.kill(os.getpid(), signal.SIGSEGV)
def test_leaves(): os._exit(0)
def test_hangs(): time.sleep(600)
def test_floods():
    while True: print("x" * 100_000)
def test_ends_the_run(): pytest.exit("enough")
def test_interrupts(): raise KeyboardInterrupt
@pytest.mark.skip(reason="no GPU")
def test_skipped(): pass
@pytest.mark.xfail(reason="known")
def test_known(): assert False
@pytest.fixture
def broken(): raise RuntimeError("no set-up")
def test_set_up(broken): pass
@pytest.mark.parametrize("n", [1, 2])
def test_last(n): pass
"""


def test_each_test_is_told_whatever_the_others_do(run_suite: RunSuite) -> None:
    files = {
        "src/kernels_here.py": "def answer(): return 42\n",
        "tests/test_mixed.py": MIXED,
        "tests/test_torn.py": "def test_never(:\n",
        "tests/test_lost.py": "import no_such_module\n",
    }
    lines = run_suite(files, seconds_per_test=4)
    assert lines[-1].type == "result", lines[-1]
    assert outcomes(lines) == {
        "test_good": "passed", "test_bad": "failed", "test_dies": "crashed", "test_leaves": "crashed",
        "test_hangs": "timed_out", "test_floods": "flooded", "test_ends_the_run": "crashed", "test_interrupts": "crashed",
        "test_skipped": "skipped", "test_known": "xfailed", "test_set_up": "error", "test_last[1]": "passed",
        "test_last[2]": "passed", "tests/test_torn.py": "error", "tests/test_lost.py": "error",
    }  # fmt: skip
    said = {line.node_id.rpartition("::")[2]: line.message for line in lines if isinstance(line, KernelTest)}
    assert said["test_dies"].startswith("the test ended its process (signal SIGSEGV)")
    assert said["test_hangs"].startswith("the test was ended after 4 s")
    assert "a wrong answer" in said["test_bad"].partition("\n")[0]
    assert "SyntaxError" in said["tests/test_torn.py"]
    assert "no_such_module" in said["tests/test_lost.py"]
    assert said["test_skipped"] == "Skipped: no GPU"
    assert lines[-1].lines == sum(isinstance(line, KernelTest | Tolerance) for line in lines)


@pytest.mark.parametrize(
    ("files", "kind", "reason", "said"),
    [
        ({"src/a.py": ""}, "unsupported", "no_tests", "none of tests"),
        ({"tests/test_empty.py": "x = 1\n"}, "unsupported", "no_tests", "finds no test in tests"),
        (
            {"tests/conftest.py": "import nowhere\n", "tests/test_a.py": ""},
            "permanent",
            "tests_do_not_start",
            "nowhere",
        ),
        ({"tests/conftest.py": "import os\nos._exit(3)\n"}, "permanent", "tests_do_not_start", "exit code 3"),
    ],
)
def test_tests_that_cannot_be_asked_say_why(
    run_suite: RunSuite, files: dict[str, str], kind: str, reason: str, said: str
) -> None:
    last = run_suite(files)[-1]
    assert isinstance(last, Failure)
    assert (last.kind.value, last.reason) == (kind, reason)
    assert said in last.message


def test_an_environment_without_pytest_says_so(run_suite: RunSuite, tmp_path: Path) -> None:
    subprocess.run([str(EVAL_PYTHON), "-m", "venv", "--without-pip", str(tmp_path / "bare")], check=True)
    last = run_suite({"tests/test_a.py": "def test_a(): pass\n"}, python=tmp_path / "bare" / "bin" / "python")[-1]
    assert isinstance(last, Failure)
    assert (last.kind.value, last.reason) == ("permanent", "pytest_missing")


def test_a_suite_that_ends_every_process_is_given_up_by_name(run_suite: RunSuite) -> None:
    text = "import os, pytest\n@pytest.mark.parametrize('n', range(30))\ndef test_n(n): os._exit(1)\n"
    found = list(outcomes(run_suite({"tests/test_n.py": text})).values())
    assert (found.count("crashed"), found.count("not_run"), len(found)) == (20, 10, 30)


TOLERANCES = """
ATOL = 1e-3
def test_a(rtol=1e-2, *, tol=5e-5, size=7):
    atol, other = (3e-4, 9.0) if size else (1e-1, 9.0)
    assert_close(x, y, atol=atol, rtol=1e-5, msg=3)
    assert (x - y).max() < 2e-3 and size < 4
class TestB:
    settings = {"atol": 4e-2, "size": 3}
"""


def test_tolerances_are_read_and_not_run(run_suite: RunSuite) -> None:
    files = {
        "tests/test_t.py": TOLERANCES,
        "tests/test_torn.py": "atol = (:\n",
        "tests/test_p.py": "def test_p(): pass\n",
    }
    lines = run_suite(files)
    found = [(line.line, line.scope, line.name, line.value) for line in lines if isinstance(line, Tolerance)]
    assert found == [
        (2, "", "ATOL", 1e-3), (3, "test_a", "rtol", 1e-2), (3, "test_a", "tol", 5e-5), (4, "test_a", "atol", 3e-4),
        (4, "test_a", "atol", 1e-1), (5, "test_a", "rtol", 1e-5), (6, "test_a", "assert <", 2e-3),
        (8, "TestB", "atol", 4e-2),
    ]  # fmt: skip
