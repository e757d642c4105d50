"""The check and build children as a sandbox runs them: by path, in the eval environment, from scratch, a real pipe."""

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import TextIO

import pytest
from driftline.contracts.channel import LINE, Case, Failure, KernelBuild, Line

ROOT = Path(__file__).resolve().parents[3]
EVAL_PYTHON = ROOT / ".venv-eval" / "bin" / "python"
CHILDREN = ROOT / "worker" / "driftline_worker" / "children"
KERNELS = ROOT / "kernels" / "src"

LIMIT = 400
"""Seconds a child may take here: ten times what it needs on an idle core, for the machine is shared."""


@dataclass(frozen=True)
class Ended:
    """What a child left behind: its lines as the worker reads them, its exit code and what it printed."""

    lines: list[Line]
    code: int
    printed: str

    @property
    def types(self) -> list[str]:
        return [line.type for line in self.lines]

    @property
    def cases(self) -> list[Case]:
        return [line for line in self.lines if isinstance(line, Case)]

    @property
    def builds(self) -> list[KernelBuild]:
        return [line for line in self.lines if isinstance(line, KernelBuild)]

    @property
    def failure(self) -> Failure:
        last = self.lines[-1]
        assert isinstance(last, Failure), last
        return last


RunChild = Callable[..., Ended]


@pytest.fixture(scope="session")
def run_child(tmp_path_factory: pytest.TempPathFactory) -> RunChild:
    """Run `check` or `build` with a spec and validate every line it writes."""

    def run(child: str, import_dir: Path, /, **spec: object) -> Ended:
        scratch = tmp_path_factory.mktemp(child)
        spec_file = scratch / "spec.json"
        spec_file.write_text(json.dumps({"import_dir": str(import_dir), "layout": "mamba2_varlen", **spec}))
        return ended(child, spec_file, scratch)

    return run


@pytest.fixture(scope="session")
def run_build(tmp_path_factory: pytest.TempPathFactory) -> RunChild:
    """Run `build` as run_child does, except that a kernel which an earlier test had compiled is taken from Triton's cache."""
    compiled = tmp_path_factory.mktemp("compiled")

    def run(import_dir: Path, /, **spec: object) -> Ended:
        scratch = tmp_path_factory.mktemp("build")
        (scratch / "triton").symlink_to(compiled)
        spec_file = scratch / "spec.json"
        spec_file.write_text(json.dumps({"import_dir": str(import_dir), "layout": "mamba2_varlen", **spec}))
        return ended("build", spec_file, scratch)

    return run


@pytest.fixture(scope="session")
def run_raw(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., list[bytes]]:
    """Run a child and give the lines as they stand on its pipe."""

    def run(child: str, import_dir: Path, /, **spec: object) -> list[bytes]:
        with started(child, import_dir, tmp_path_factory.mktemp(child), **spec) as (process, pipe):
            lines = pipe.read().splitlines()
            process.wait(timeout=LIMIT)
        return lines

    return run


@pytest.fixture(scope="session")
def start_child() -> Callable[..., AbstractContextManager[tuple["subprocess.Popen[bytes]", BufferedReader]]]:
    return started


@contextmanager
def started(
    child: str, import_dir: Path, scratch: Path, **spec: object
) -> Iterator[tuple["subprocess.Popen[bytes]", BufferedReader]]:
    """The child's process and the reading end of its pipe; it is dead afterwards."""
    spec_file = scratch / "spec.json"
    spec_file.write_text(json.dumps({"import_dir": str(import_dir), "layout": "mamba2_varlen", **spec}))
    with (scratch / "printed").open("w+") as printed, running(child, spec_file, scratch, printed) as both:
        yield both


@contextmanager
def running(
    child: str, spec_file: Path, scratch: Path, printed: TextIO
) -> Iterator[tuple["subprocess.Popen[bytes]", BufferedReader]]:
    home = scratch / "home"
    home.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TRITON_CACHE_DIR": str(scratch / "triton")}
    environment["OMP_NUM_THREADS"] = "1"
    reading, writing = os.pipe()
    arguments = ["-P", "-s", str(CHILDREN / f"{child}.py"), "--spec", str(spec_file), "--channel-fd", str(writing)]
    with os.fdopen(reading, "rb") as pipe:
        process = subprocess.Popen(
            [str(EVAL_PYTHON), *arguments], cwd=home, env=environment, pass_fds=[writing], stdout=printed,
            stderr=printed, start_new_session=True,
        )  # fmt: skip
        os.close(writing)
        try:
            yield process, pipe
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def ended(child: str, spec_file: Path, scratch: Path) -> Ended:
    with (scratch / "printed").open("w+") as printed:
        with running(child, spec_file, scratch, printed) as (process, pipe):
            lines = [LINE.validate_json(line) for line in pipe]
            code = process.wait(timeout=LIMIT)
        printed.seek(0)
        return Ended(lines, code, printed.read())


@pytest.fixture
def kernels_copy(tmp_path: Path) -> Path:
    """A folder with a copy of the kernels, to break."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(KERNELS / "mamba2_varlen", tmp_path / "mamba2_varlen", ignore=ignored)
    return tmp_path
