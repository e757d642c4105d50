"""The command line as a user runs it, a small repository, and one embedded server without a worker."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from git_repository import branch, commit, git, start

Driftline = Callable[..., "subprocess.CompletedProcess[str]"]
START_SECONDS = 60.0


@pytest.fixture(scope="session")
def driftline() -> Driftline:
    """Run `driftline ARGUMENTS` in a folder; keywords are environment variables."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("DRIFTLINE_")}
    program = [sys.executable, "-P", "-c", "from driftline.cli import main; main()"]

    def run(*arguments: str, folder: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [*program, *arguments],
            cwd=folder,
            env=kept | environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    return run


@pytest.fixture(scope="session")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """main with kernels; branch `change` from it."""
    made = start(tmp_path_factory.mktemp("git") / "kernels")
    file = "kernels/src/mamba2_varlen/__init__.py"
    commit(made, "main", {file: '"""Kernels of main."""\n'})
    branch(made, "change", {file: '"""Kernels of change."""\n'})
    git(made, "checkout", "--quiet", "main")
    return made


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder whose .driftline a server serves."""
    folder = tmp_path_factory.mktemp("served")
    command = [
        sys.executable,
        "-P",
        "-c",
        "from driftline.cli import main; main()",
        "serve",
        "--port",
        "0",
        "--no-worker",
    ]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + START_SECONDS
    while not (folder / ".driftline" / "server.json").exists():
        assert process.poll() is None and time.monotonic() < deadline, process.communicate()[1]
        time.sleep(0.05)
    assert json.loads((folder / ".driftline" / "server.json").read_text())["pid"] == process.pid, (
        "serve becomes the supervisor"
    )
    yield folder
    process.terminate()
    _, said = process.communicate(timeout=30)
    assert "Driftline is at http://127.0.0.1:" in said
    assert process.returncode == 0


@pytest.fixture
def here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., SimpleNamespace]:
    """Run a command line in this process, in the test's folder; a bug is a traceback of the test."""
    from driftline.cli.app import run

    def call(*arguments: str) -> SimpleNamespace:
        monkeypatch.chdir(tmp_path)
        code = run(list(arguments))
        return SimpleNamespace(
            returncode=code, **{f"std{name}": text for name, text in capsys.readouterr()._asdict().items()}
        )

    return call


@pytest.fixture
def compared(here, lm_eval_files, tmp_path):
    """Write two gsm8k evaluations and compare them; the answer, and its JSON."""

    def run(base, head, *options, **departures):
        lm_eval_files.write(tmp_path / "base", lm_eval_files.gsm8k(base))
        lm_eval_files.write(tmp_path / "head", lm_eval_files.gsm8k(head, **departures))
        answer = here("compare", "base", "head", "--json", *options)
        return answer, json.loads(answer.stdout) if answer.stdout else None

    return run
