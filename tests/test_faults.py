"""Commits that misbehave, as whole runs: told on the command line, in the API and on the page; the stack goes on."""

import os
import re
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest
from example_run import QUESTIONS
from git_repository import branch, commit, git
from stacks import PATIENCE_SECONDS, ROOT, wait_for

CLI = Path(sys.executable).with_name("driftline")
CHANNEL = "import os, sys\nchannel = int(sys.argv[sys.argv.index('--channel-fd') + 1])\n"
FAULTS = {
    "does-not-import": (
        "import no_such_module\n",
        "mamba2_varlen does not import: ModuleNotFoundError: No module named 'no_such_module' (kernels_do_not_import)",
    ),
    "floods-its-channel": (
        CHANNEL + "while True:\n    os.write(channel, b'z' * 65536)\n",
        "the child sent a line of more than 1048576 bytes on its channel; it was ended (flooded_channel)",
    ),
}
"""branch -> (what its package begins with, what the kernel check says of it)"""


@pytest.fixture(scope="module")
def faulty(example):
    """The example repository, whose base is measured already, with a branch for each fault and one without kernels."""
    folder, file = example.path, "kernels/src/mamba2_varlen/__init__.py"
    text = (folder / file).read_text(encoding="utf-8")
    for name, (code, _) in FAULTS.items():
        branch(folder, name, {file: code + text})
    git(folder, "checkout", "--quiet", "-b", "no-kernels", "main")
    git(folder, "rm", "-rq", "kernels")
    commit(folder, "no kernels")
    git(folder, "checkout", "--quiet", "main")
    return folder


def submitting(embedded, repository, head, *more):
    """`driftline submit`, under way."""
    command = [
        str(CLI),
        "submit",
        "--repo",
        str(repository),
        "--head",
        head,
        "--base",
        "main",
    ]
    command += ["--lane", "canary V1", "--questions", str(QUESTIONS), "--name", head, *more]
    environment = {"PATH": os.environ["PATH"], "DRIFTLINE_DATA_DIR": str(embedded.data_dir), "COLUMNS": "200"}
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.fixture(scope="module")
def watched(embedded, embedded_outcome, faulty):
    """branch -> (exit code, stdout, stderr), all of them at once. Base is a baseline of the example's run."""
    started = {branch: submitting(embedded, faulty, branch, "--watch") for branch in FAULTS}
    printed = {branch: process.communicate(timeout=PATIENCE_SECONDS) for branch, process in started.items()}
    return {branch: (process.returncode, *printed[branch]) for branch, process in started.items()}


@pytest.mark.parametrize("branch", FAULTS)
def test_a_commit_that_misbehaves_is_broken_and_red(embedded, watched, branch):
    told = FAULTS[branch][1]
    code, printed, said = watched[branch]
    assert code == 2, said
    assert "### canary V1: not_comparable, broken" in printed
    assert "### Kernel check: failed" in printed
    run_id = re.match(r"run ([0-9a-f-]{36})\n", printed)[1]
    view = embedded.server.get(f"/api/v1/runs/{run_id}")
    assert (view["state"], view["headline"]["color"], view["kernel_check"]["result"]) == ("done", "red", "failed")
    assert view["kernel_check"]["reason"] == f"head's kernels could not be checked, base's could: {told}"
    assert [lane["broken"] for lane in view["lanes"]] == [True]
    jobs = {(job["kind"], job["arm"]): job for job in view["jobs"]}
    assert {jobs[kind, "head"]["state"] for kind in ("build", "check", "evaluate")} == {"failed"}
    assert {jobs[kind, "base"]["state"] for kind in ("build", "check", "evaluate")} == {"succeeded"}
    assert told in unescape(embedded.server.get_text(f"/runs/{run_id}"))


def test_a_commit_without_kernels_is_refused_in_a_line(embedded, faulty):
    process = submitting(embedded, faulty, "no-kernels")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert re.fullmatch(r"driftline: commit [0-9a-f]{40} has no Mamba2 kernels: .* \(no_kernels\)\n", said), said


def test_nothing_of_a_child_is_left(embedded, watched):
    scratch = embedded.data_dir / "worker" / "scratch"
    wait_for(lambda: True if not list(scratch.iterdir()) else None, "an empty scratch folder")
