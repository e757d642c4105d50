"""The check and build children as a sandbox runs them: by path, in the eval environment, from scratch, a real pipe."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

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


def ended(child: str, spec_file: Path, scratch: Path) -> Ended:
    home = scratch / "home"
    home.mkdir()
    environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TRITON_CACHE_DIR": str(scratch / "triton")}
    environment["OMP_NUM_THREADS"] = "1"
    reading, writing = os.pipe()
    arguments = ["-P", "-s", str(CHILDREN / f"{child}.py"), "--spec", str(spec_file), "--channel-fd", str(writing)]
    with (scratch / "printed").open("w+") as printed, os.fdopen(reading, "rb") as pipe:
        process = subprocess.Popen(
            [str(EVAL_PYTHON), *arguments],
            cwd=home,
            env=environment,
            pass_fds=[writing],
            stdout=printed,
            stderr=printed,
        )
        os.close(writing)
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
