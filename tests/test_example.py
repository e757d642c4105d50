"""The example of `make run`: its patches apply to today's kernels, and do to numbers what they are said to do."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
EVAL = ROOT / ".venv-eval" / "bin" / "python"
PACKAGE = "kernels/src"

PROBE = """
import sys; sys.path.insert(0, sys.argv[1])
import hashlib, torch, mamba2_varlen as m
assert m.__file__.startswith(sys.argv[1]), m.__file__
g = torch.Generator().manual_seed(0)
lens, H, P, N = (40, 100, 37), 2, 8, 8
T = sum(lens)
x, dt = torch.randn(T, H, P, generator=g), torch.rand(T, H, generator=g)
A, B, C = -torch.rand(H, generator=g), torch.randn(T, 1, N, generator=g), torch.randn(T, 1, N, generator=g)
initial = torch.randn(len(lens), H, P, N, generator=g)
metadata = m.build_metadata([0, 40, 140, 177], chunk_size=64)
for states in (None, initial):
    found = m.ssd_prefill(x, dt, A, B, C, metadata=metadata, initial_states=states, backend="torch")
    print(*(hashlib.sha256(part.contiguous().numpy().tobytes()).hexdigest() for part in (found.out, found.final_states)))
"""


def hashes(example, branch, tmp_path):
    """(output, final state) hashes: without initial states, then with."""
    tree = tmp_path / branch
    tree.mkdir()
    archive = subprocess.run(["git", "archive", branch, PACKAGE], cwd=example.path, check=True, capture_output=True)
    subprocess.run(["tar", "x"], cwd=tree, input=archive.stdout, check=True)
    command = [str(EVAL), "-P", "-c", PROBE, str(tree / PACKAGE)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


@pytest.fixture(scope="module")
def main_hashes(example, tmp_path_factory):
    return hashes(example, "main", tmp_path_factory.mktemp("main"))


def test_the_refactor_changes_no_bit(example, main_hashes, tmp_path):
    assert hashes(example, "refactor", tmp_path) == main_hashes


def test_the_bug_changes_the_output_of_carried_states_and_nothing_else(example, main_hashes, tmp_path):
    out, final, carried_out, carried_final = hashes(example, "initial-state-decay", tmp_path)
    assert [out, final, carried_final] == [main_hashes[0], main_hashes[1], main_hashes[3]]
    assert carried_out != main_hashes[2]
