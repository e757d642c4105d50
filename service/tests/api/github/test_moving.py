"""Pull requests that move: rebased, aimed at another branch, in conflict with it. And what their change reaches."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from driftline.contracts.words import RunState, Verdict
from driftline_service.database.tables import GithubPull, Run
from driftline_service.runs.priority import MAIN_KEY
from git_repository import branch
from sqlalchemy import select

from .test_pull_requests import _finish

INSIDE = "kernels/src/mamba2_varlen"


@pytest.fixture
def own(side: Any, tmp_path: Path) -> Any:
    """A copy of the repository that a test may change."""
    side.repository = Path(shutil.copytree(side.repository, tmp_path / "own"))
    side.commits = dict(side.commits)
    return side


def _commit(side: Any, name: str, files: dict[str, str], *, onto: str) -> str:
    """Make or move a branch to `onto` with a commit on top."""
    side.commits[name] = branch(side.repository, name, files, onto=onto)
    return side.commits[name]


def test_a_rebase_that_leaves_the_kernels_alone_keeps_the_verdict_and_says_so(own: Any) -> None:
    text = (own.repository / INSIDE / "torch_backend" / "norm.py").read_text() + "\nCHANGED = 1\n"
    changed = {f"{INSIDE}/torch_backend/norm.py": text}
    first = _commit(own, "change", changed, onto="main")
    own.send("pull_request", own.pull_request(branch="change"))
    own.work()
    (run,) = own.runs()
    _finish(own, run.id, color="green", verdict=Verdict.EQUIVALENT)
    own.work()
    _commit(own, "main", {"README": "kernels, and more\n"}, onto="main")
    second = _commit(own, "change", changed, onto="main")
    own.send("pull_request", own.pull_request("synchronize", branch="change"))
    own.work()
    assert [each.id for each in own.runs()] == [run.id]
    assert f"The head is `{second[:10]}` now, with the kernels of `{first[:10]}` byte for byte" in own.shown
    assert "All in all equivalent." in own.shown
    old, new = own.github.checks.values()
    assert (old["head_sha"], new["head_sha"], new["conclusion"]) == (first, second, "success")
    assert f"Measured on `{first[:10]}`" in new["output"]["summary"]
    before = len(own.github.calls)
    own.work()
    assert len(own.github.calls) == before


def test_a_rebase_onto_other_kernels_is_measured_again(own: Any) -> None:
    text = (own.repository / INSIDE / "torch_backend" / "norm.py").read_text()
    _commit(own, "change", {f"{INSIDE}/torch_backend/norm.py": text + "\nCHANGED = 1\n"}, onto="main")
    own.send("pull_request", own.pull_request(branch="change"))
    own.work()
    _finish(own, own.runs()[0].id, color="green", verdict=Verdict.EQUIVALENT)
    other = (own.repository / INSIDE / "torch_backend" / "ssu.py").read_text()
    _commit(own, "main", {f"{INSIDE}/torch_backend/ssu.py": other + "\nNEW = 1\n"}, onto="main")
    _commit(own, "change", {f"{INSIDE}/torch_backend/norm.py": text + "\nCHANGED = 1\n"}, onto="main")
    own.send("pull_request", own.pull_request("synchronize", branch="change"))
    own.work()
    assert [run.state for run in own.runs()] == [RunState.DONE, RunState.QUEUED]


def test_the_base_is_where_the_head_left_the_branch_it_goes_to(own: Any) -> None:
    text = (own.repository / INSIDE / "torch_backend" / "norm.py").read_text()
    release = _commit(own, "release", {f"{INSIDE}/torch_backend/norm.py": text + "\nRELEASE = 1\n"}, onto="main")
    _commit(own, "change", {f"{INSIDE}/torch_backend/norm.py": text + "\nRELEASE = 2\n"}, onto="release")
    aimed = own.pull_request(branch="change")
    aimed["pull_request"]["base"] |= {"ref": "release", "sha": release}
    own.send("pull_request", aimed)
    own.work()
    (run,) = own.runs()
    assert (run.base_sha, run.base_ref) == (release, "release")
    own.send(
        "pull_request",
        own.pull_request("edited", branch="change") | {"changes": {"base": {"ref": {"from": "release"}}}},
    )
    own.work()
    assert [(each.base_sha, each.base_ref) for each in own.runs()][1:] == [(own.commits["main"], "main")]
    assert own.runs()[0].state is RunState.SUPERSEDED


@pytest.mark.parametrize("more", [{"draft": True}, {"fork": True}, {}])
def test_a_push_ends_what_runs_of_the_old_head_even_if_nothing_new_runs(side: Any, more: dict[str, Any]) -> None:
    side.send("pull_request", side.pull_request())
    side.work()
    side.send("pull_request", side.pull_request("synchronize", branch="triton", **more))
    side.work()
    (run,) = side.runs()
    assert run.state is RunState.CANCELLED
    assert [check["conclusion"] for check in side.github.checks.values()] == ["cancelled"]


def test_a_head_that_is_pushed_back_to_is_measured_after_all(side: Any) -> None:
    label = {"labels": [{"name": "driftline"}]}
    for name in ("refactor", "triton", "refactor"):
        side.send("pull_request", side.pull_request("synchronize", branch=name, **label))
        side.work()
    states = [run.state for run in side.runs()]
    assert states == [RunState.SUPERSEDED, RunState.SUPERSEDED, RunState.QUEUED]
    assert side.runs()[2].head_sha == side.commits["refactor"]


def test_closed_and_opened_again_it_is_measured(side: Any) -> None:
    side.send("pull_request", side.pull_request())
    side.send("pull_request", side.pull_request("closed", state="closed"))
    side.send("pull_request", side.pull_request("reopened"))
    side.work()
    assert [run.state for run in side.runs()] == [RunState.CANCELLED, RunState.QUEUED]


def test_a_push_to_main_is_measured_once_and_behind_everybody(own: Any) -> None:
    before = own.commits["main"]
    text = (own.repository / INSIDE / "torch_backend" / "norm.py").read_text()
    after = _commit(own, "main", {f"{INSIDE}/torch_backend/norm.py": text + "\nCHANGED = 1\n"}, onto="main")
    for _ in range(2):  # told twice, by two of the App's webhooks
        own.send("push", own.common() | {"ref": "refs/heads/main", "before": before, "after": after})
    own.work()
    with own.sessions() as session:
        (run,) = session.scalars(select(Run).where(Run.head_sha == after)).unique()
    assert (run.base_sha, run.created_by, run.idempotency_key) == (before, "github", f"{MAIN_KEY}{after}")
    assert [outcome.endswith("of main") for outcome in own.outcomes()] == [True, True]


def test_a_conflict_is_told_and_the_head_is_tested_alone(own: Any) -> None:
    text = (own.repository / INSIDE / "torch_backend" / "norm.py").read_text()
    head = _commit(own, "change", {f"{INSIDE}/torch_backend/norm.py": text + "\nOURS = 1\n"}, onto="main")
    base = own.commits["main"]
    _commit(own, "main", {f"{INSIDE}/torch_backend/norm.py": text + "\nTHEIRS = 1\n"}, onto="main")
    own.send("pull_request", own.pull_request(branch="change"))
    own.work()
    (run,) = own.runs()
    assert (run.head_sha, run.base_sha) == (head, base)
    assert f"conflicts with `main` ({INSIDE}/torch_backend/norm.py): the head was tested alone" in own.shown
    _commit(own, "change", {f"{INSIDE}/torch_backend/norm.py": text + "\nTHEIRS = 1\nOURS = 1\n"}, onto="main")
    own.send("pull_request", own.pull_request("synchronize", branch="change"))
    own.work()
    with own.sessions() as session:
        assert session.scalar(select(GithubPull.conflicts).where(GithubPull.repository == own.name)) == ""
    assert "conflicts with" not in own.shown


def test_the_comment_and_the_api_say_what_the_change_reaches(own: Any) -> None:
    file = own.repository / INSIDE / "torch_backend" / "norm.py"
    changed = re.sub(r"(def rms_norm_gated\(.*?\n)", r"\1    CHANGED = 1\n", file.read_text(), count=1)
    assert changed != file.read_text()
    _commit(own, "change", {f"{INSIDE}/torch_backend/norm.py": changed}, onto="main")
    own.send("pull_request", own.pull_request(branch="change"))
    own.work()
    (run,) = own.runs()
    assert (
        "touches norm: rms_norm_gated (torch) is affected; the repository has no CI configuration"
        in own.shown.replace("\\", "")
    )
    impact = own.client.get(f"/api/v1/runs/{run.id}/impact").json()
    assert impact["operators"] == [{"operator": "rms_norm_gated", "backends": ["torch"]}]
    assert own.client.get(f"/api/v1/runs/{run.id}").json()["impact"] == impact
    assert "What the change reaches" in own.client.get(f"/runs/{run.id}").text
