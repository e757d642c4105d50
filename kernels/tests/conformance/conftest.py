"""Copies of the kernels to break, and the check of a copy in a process of its own, as a commit is checked."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import mamba2_conformance
import pytest

SOURCE = Path(mamba2_conformance.__file__).resolve().parents[1] / "mamba2_varlen"

CHECK = """
import dataclasses, json, os, sys
from pathlib import Path
os.environ["TRITON_INTERPRET"] = "1"
from mamba2_conformance import interpreter, runner
from mamba2_conformance.adapters.layout import load_layout
interpreter.quicken()
folder, backends, prefixes, layout = sys.argv[1], sys.argv[2].split(","), tuple(sys.argv[3].split(",")), sys.argv[4]
adapter = load_layout(layout, Path(folder))
outcomes = [
    dataclasses.asdict(runner.outcome_of(case, adapter, backend))
    for case, backend in runner.plan(adapter, backends) if case.name.startswith(prefixes)
]
print(json.dumps(outcomes))
"""

Outcomes = list[dict[str, Any]]
Edit = tuple[str, str, str]
"""File below mamba2_varlen, text that occurs in it once, text to put there."""


@pytest.fixture
def broken_copy(tmp_path: Path) -> Callable[..., Path]:
    """A folder that holds a copy of the kernels with each edit made exactly once, and code added to a file's end."""

    def copy(*edits: Edit, added: tuple[str, str] | None = None) -> Path:
        shutil.copytree(SOURCE, tmp_path / "mamba2_varlen", ignore=shutil.ignore_patterns("__pycache__"))
        for name, old, new in edits:
            file = tmp_path / "mamba2_varlen" / name
            text = file.read_text()
            assert text.count(old) == 1, f"{old!r} occurs {text.count(old)} times in {name}; adapt the edit to the code"
            file.write_text(text.replace(old, new))
        if added is not None:
            with (tmp_path / "mamba2_varlen" / added[0]).open("a") as end:
                end.write(added[1])
        return tmp_path

    return copy


@pytest.fixture(scope="session")
def check() -> Callable[..., Outcomes]:
    """Outcomes of the cases whose names begin with a prefix, put to the kernels in a folder."""

    def run(
        folder: Path, backends: Sequence[str], prefixes: Sequence[str] = ("",), layout: str = "mamba2_varlen"
    ) -> Outcomes:
        command = [sys.executable, "-P", "-c", CHECK, str(folder), ",".join(backends), ",".join(prefixes), layout]
        environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
        assert done.returncode == 0, done.stderr
        outcomes: Outcomes = json.loads(done.stdout)
        return outcomes

    return run


@pytest.fixture(scope="session")
def kernels_folder() -> Path:
    """Where the kernels of this work tree lie."""
    return SOURCE.parent
