"""A commit's Python over a release's compiled parts: what is imported is the commit's, what only a build makes is the release's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from driftline_worker.children.vllm_engine.overlay import import_first, make_overlay


def package(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_the_commit_is_over_the_release(tmp_path: Path) -> None:
    release = package(
        tmp_path / "release" / "vllm",
        {
            "__init__.py": "", "same.py": "X = 1\n", "changed.py": "Y = 'release'\n", "gone.py": "Z = 1\n",
            "_C.abi3.so": "binary", "_version.py": "V = '0.32.0'\n", "__pycache__/same.cpython-311.pyc": "bytecode",
        },
    )  # fmt: skip
    commit = package(
        tmp_path / "commit" / "vllm",
        {"__init__.py": "", "same.py": "X = 1\n", "changed.py": "Y = 'commit'\n", "ops/new.py": "W = 1\n"},
    )
    made = make_overlay(commit, release, tmp_path / "engine")
    assert made.changed == ("changed.py", "ops/new.py")
    assert made.missing == ("gone.py",)
    place = made.folder / "vllm"
    assert (place / "same.py").readlink() == release / "same.py"
    assert (place / "changed.py").readlink() == commit / "changed.py"
    assert (place / "_C.abi3.so").readlink() == release / "_C.abi3.so"
    assert (place / "__pycache__" / "same.cpython-311.pyc").readlink().read_text() == "bytecode"
    assert not (place / "gone.py").exists()
    code = "from vllm import changed, _version; import vllm.ops.new as new; print(changed.Y, _version.V, new.W)"
    answer = subprocess.run(
        [sys.executable, "-P", "-s", "-c", code], env={"PYTHONPATH": str(made.folder), "PATH": os.environ["PATH"]},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert answer.stdout.split() == ["commit", "0.32.0", "1"]


@pytest.mark.parametrize(
    ("before", "after"), [({}, "engine"), ({"PYTHONPATH": "a:b"}, "engine:a:b"), ({"PYTHONPATH": ""}, "engine")]
)
def test_what_was_importable_before_still_is(before: dict[str, str], after: str) -> None:
    import_first(Path("engine"), before)
    assert before == {"PYTHONPATH": after}


def test_an_unchanged_commit_changes_nothing(tmp_path: Path) -> None:
    files = {"__init__.py": "", "a.py": "X = 1\n"}
    made = make_overlay(package(tmp_path / "c", files), package(tmp_path / "r", files), tmp_path / "engine")
    assert (made.changed, made.missing) == ((), ())
