"""The repository's own tests through the whole worker: checkout, sandbox, child, judge of lines."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from driftline.contracts.channel import KernelTest, Tolerance
from driftline.contracts.jobs import CommitSource, SuiteSpec
from driftline.contracts.kernel_jobs import Suite
from driftline.contracts.words import Arm
from driftline_worker.bench import Bench
from driftline_worker.ending import Failed, Succeeded
from driftline_worker.sandbox import Sandbox
from driftline_worker.settings import ChildSettings
from driftline_worker.stop_request import StopRequest
from git_repository import commit

TESTS = """
import os, socket
from pathlib import Path
import mamba2_varlen

def test_kernels(): assert mamba2_varlen.BACKENDS == ()
def test_beside(): assert Path("data/answer.txt").read_text() == "42"
def test_network():
    try:
        socket.create_connection(("127.0.0.1", 9), timeout=1)
    except OSError:
        return
def test_dies(): os.abort()
def test_last(atol=1e-3): Path("written").touch()
"""


@pytest.fixture
def run(
    repository: Path, source: CommitSource, any_sandbox: Sandbox, tmp_path: Path, make_sink: Callable[[], Any]
) -> Callable[..., Any]:
    def run(**suite: Any) -> tuple[Any, list[Any]]:
        sha = commit(repository, "Test", {"tests/test_all.py": TESTS, "data/answer.txt": "42"})
        at = source.model_copy(update={"sha": sha})
        spec = SuiteSpec(job_id=uuid4(), run_id=uuid4(), arm=Arm.HEAD, source=at, suite=Suite(**suite))
        settings = ChildSettings(data_dir=tmp_path / "data", allow_local_repositories=True)
        kept = make_sink()
        return Bench(settings, any_sandbox).run(spec, kept, StopRequest()), kept.lines

    return run


def test_a_repositorys_own_tests_run_in_the_sandbox(run: Callable[..., Any]) -> None:
    ending, lines = run(paths=["tests"], beside=["data", "no/such/folder"])
    assert isinstance(ending, Succeeded), ending
    found = {line.node_id.rpartition("::")[2]: line.outcome for line in lines if isinstance(line, KernelTest)}
    assert found == {
        "test_kernels": "passed", "test_beside": "passed", "test_network": "passed", "test_dies": "crashed",
        "test_last": "passed",
    }  # fmt: skip
    assert [(line.name, line.value) for line in lines if isinstance(line, Tolerance)] == [("atol", 1e-3)]
    assert ending.dropped == 0


def test_a_commit_without_the_paths_has_no_tests(run: Callable[..., Any]) -> None:
    ending, lines = run(paths=["kernels/tests"])
    assert isinstance(ending, Failed)
    assert (ending.kind, ending.reason, lines) == ("unsupported", "no_tests", [])
    assert "kernels/tests" in ending.message
