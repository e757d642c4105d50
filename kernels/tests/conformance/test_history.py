"""The check on vLLM's own history: commits with known bugs and the commits that repaired them.

Needs a git directory of vLLM's whole history, named by VLLM_REPO (`make test-history`); five minutes in the
interpreter. Deselected by default, and a failure, never a skip, when asked for without one.
"""

import os
import subprocess
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import pytest

pytestmark = pytest.mark.history

Check = Callable[..., list[dict[str, object]]]

OPS = "vllm/model_executor/layers/mamba/ops"

ISOLATE_21783 = frozenset({f"carried_state/lens_{lens}" for lens in ("40_88", "10_118", "200_56", "70_58_128")})
BOTH_BUGS = frozenset({"carried_state/lens_40_100_37", "carried_state/lens_138_225"})
WIDE_STATE = frozenset({"packing/state_256"})
LENS = ISOLATE_21783 | BOTH_BUGS | WIDE_STATE


@dataclass(frozen=True)
class Rung:
    """A commit, and which of the cases in LENS fail on it."""

    commit: str
    fails: frozenset[str]


LADDER = {
    "before 21783": Rung("1ece7f30baa9d94ff57e13d851725acf657a9690", ISOLATE_21783 | BOTH_BUGS),
    "21783": Rung("46ae7f666699496f45c0349b87f08d5119720951", BOTH_BUGS),
    "23279": Rung("e041314184e3b1c4d797b2b025a5a9f54ade5a00", frozenset()),
    "21467": Rung("2b6b1d78092826c789514c5a901d1e872d4602dd", frozenset()),
    "24683": Rung("fea3e476aa3eec13c39c4cb61eab88e8eb70ad7b", WIDE_STATE),
    "28295": Rung("e0c910bb89e45f4a2a976dc3c76248bbdea854e0", frozenset()),
    "2026-08-17": Rung("017e9f4448b700e85ee16023287b025693c72b9e", frozenset()),
}
"""vLLM PR -> its merge commit."""

KNOWN_OUTSIDE = {"carried_state/empty_between", "convolution/width_5"}
"""Wrong on the last rung, and outside its contract: no scheduler issues an empty prefill, no model is so wide."""


@pytest.fixture
def unpacked(tmp_path: Path) -> Callable[[str], Path]:
    repository = os.environ.get("VLLM_REPO")
    assert repository, "VLLM_REPO names no git directory of vLLM; make test-history VLLM_REPO=/path/to/vllm"

    def unpack(commit: str) -> Path:
        command = ["git", "-C", repository, "archive", f"{commit}:{OPS}"]
        archive = subprocess.run(command, capture_output=True, check=True).stdout
        with tarfile.open(fileobj=BytesIO(archive)) as files:
            files.extractall(tmp_path / "ops", filter="data")
        return tmp_path

    return unpack


@pytest.mark.parametrize("rung", LADDER.values(), ids=LADDER.keys())
def test_each_commit_fails_what_it_broke_and_nothing_else(
    check: Check, unpacked: Callable[[str], Path], rung: Rung
) -> None:
    outcomes = check(unpacked(rung.commit), ["triton"], ("carried_state/lens_", *WIDE_STATE), "vllm")
    assert {str(one["name"]) for one in outcomes} == LENS
    assert {str(one["name"]) for one in outcomes if not one["passed"]} == rung.fails


def test_the_last_commit_passes_every_case_of_its_contract_and_shows_what_is_wrong_outside(
    check: Check, unpacked: Callable[[str], Path]
) -> None:
    outcomes = check(unpacked(LADDER["2026-08-17"].commit), ["triton"], ("",), "vllm")
    failed = {(str(one["name"]), str(one["kind"])) for one in outcomes if not one["passed"]}
    assert {kind for _, kind in failed} == {"outside"}
    assert {name for name, _ in failed} >= KNOWN_OUTSIDE
