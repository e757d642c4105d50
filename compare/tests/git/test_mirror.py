"""A mirror of real repositories: what it finds, what it refuses."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from driftline.contracts.words import Layout
from driftline.git import GitError, Kernels, Mirror, open_mirror

Commit = Callable[..., str]
RunGit = Callable[..., str]


def reason(mirror: Mirror, ref: str) -> str:
    with pytest.raises(GitError) as caught:
        mirror.resolve(ref)
    return caught.value.reason


def test_every_way_to_name_a_commit(mirror: Mirror, commit: Commit, repository: Path, git: RunGit) -> None:
    first = commit({"a": "1"}, "first")
    git(repository, "tag", "-a", "v1", "-m", "one")
    second = commit({"a": "2"}, "second")
    git(repository, "update-ref", "refs/pull/7/head", first)
    mirror.fetch()
    for name in ("main", "HEAD", second, second[:9], "refs/heads/main", "heads/main"):
        if not name.startswith("refs/"):
            assert mirror.resolve(name) == second, name
    for name in ("v1", "main~1", "main^", "HEAD~1", "pull/7/head", f"{second}^", f"{second[:10]}~1"):
        assert mirror.resolve(name) == first, name
    assert reason(mirror, "no-such-branch") == "unknown_commit"
    assert reason(mirror, "f" * 40) == "unknown_commit"
    assert reason(mirror, "--output=/tmp/x") == "bad_ref"


def test_a_branch_that_looks_like_a_sha_is_a_branch(
    mirror: Mirror, commit: Commit, repository: Path, git: RunGit
) -> None:
    first = commit({"a": "1"})
    second = commit({"a": "2"})
    git(repository, "branch", second[:8], first)
    mirror.fetch()
    assert mirror.resolve(second[:8]) == first
    assert mirror.resolve(second) == second


def test_fetch_follows_pushes_and_forgets_removed_branches(
    mirror: Mirror, commit: Commit, repository: Path, git: RunGit
) -> None:
    first = commit({"a": "1"})
    git(repository, "branch", "gone")
    mirror.fetch()
    git(repository, "branch", "-D", "gone")
    git(repository, "commit", "--amend", "--quiet", "-m", "forced")
    mirror.fetch()
    assert reason(mirror, "gone") == "unknown_commit"
    assert mirror.resolve("main") != first


def test_a_pinned_commit_stays_after_its_branch_went(
    mirror: Mirror, commit: Commit, repository: Path, git: RunGit
) -> None:
    commit({"a": "1"})
    git(repository, "checkout", "-q", "-b", "side")
    pinned = commit({"a": "2"})
    git(repository, "checkout", "-q", "main")
    git(repository, "branch", "-D", "side")
    mirror.fetch()
    mirror.fetch_commit(pinned)
    git(repository, "reflog", "expire", "--expire=now", "--all")
    git(repository, "gc", "-q", "--prune=now")
    mirror.fetch()
    mirror.fetch_commit(pinned)
    assert mirror.resolve(pinned) == pinned
    with pytest.raises(GitError) as caught:
        mirror.fetch_commit("e" * 40)
    assert caught.value.reason == "unknown_commit"
    assert "e" * 40 in str(caught.value)


def test_the_main_branch_is_the_one_head_names(mirror: Mirror, commit: Commit, repository: Path, git: RunGit) -> None:
    commit({"a": "1"})
    git(repository, "checkout", "-q", "-b", "trunk2")
    mirror.fetch()
    assert mirror.default_branch() == "trunk2"
    git(repository, "checkout", "-q", "--detach")
    head = commit({"a": "2"})
    mirror.fetch()
    assert mirror.resolve("HEAD") == head


def test_an_empty_repository_has_no_main_branch(mirror: Mirror) -> None:
    mirror.fetch()
    with pytest.raises(GitError) as caught:
        mirror.default_branch()
    assert caught.value.reason == "no_default_branch"


def test_history_questions(
    mirror: Mirror, commit: Commit, repository: Path, git: RunGit, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_COMMITTER_DATE", "2026-01-02T03:04:05+00:00")
    root = commit({"a": "1", "dir/b": "1"}, "root")
    git(repository, "checkout", "-q", "-b", "side")
    side = commit({"dir/c": "1"}, "side: ünï\tcode")
    git(repository, "checkout", "-q", "main")
    main = commit({"a": "2"}, "main goes on")
    git(repository, "checkout", "-q", "--orphan", "island")
    island = commit({"z": "1"}, "island")
    mirror.fetch()
    assert mirror.merge_base(side, main) == root
    assert mirror.is_ancestor(root, side)
    assert not mirror.is_ancestor(side, main)
    assert mirror.changed_paths(main, side) == ["a", "dir/c"]
    assert mirror.tree_id(root, "dir") == mirror.tree_id(main, "dir/")
    assert mirror.tree_id(root, "dir") != mirror.tree_id(side, "dir")
    assert mirror.tree_id(root, "a") is None
    assert mirror.tree_id(root, "nowhere") is None
    info = mirror.commit_info(side)
    assert (info.subject, info.author, info.parents) == ("side: ünï\tcode", "Ada", (root,))
    assert info.committed_at == datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    with pytest.raises(GitError) as caught:
        mirror.merge_base(island, main)
    assert caught.value.reason == "no_merge_base"


def test_both_layouts_are_found_the_shortest_path_first(mirror: Mirror, commit: Commit) -> None:
    bare = commit({"README": "x", "not_mamba2_varlen/__init__.py": ""})
    vllm = commit({"vllm/model_executor/layers/mamba/ops/ssd_combined.py": ""})
    own = commit({"deep/er/src/mamba2_varlen/__init__.py": "", "src/mamba2_varlen/__init__.py": ""})
    mirror.fetch()
    assert mirror.find_kernels(bare) is None
    assert mirror.find_kernels(vllm) == Kernels(Layout.VLLM, "vllm/model_executor/layers/mamba/ops")
    assert mirror.find_kernels(own) == Kernels(Layout.MAMBA2_VARLEN, "src/mamba2_varlen")


def test_addresses_that_lead_nowhere(tmp_path: Path) -> None:
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    listener.close()
    (tmp_path / "plain").mkdir()
    cases = {
        str(tmp_path / "missing"): "unreachable_repository",
        str(tmp_path / "plain"): "not_a_repository",
        f"http://127.0.0.1:{port}/x.git": "unreachable_repository",
    }
    for url, expected in cases.items():
        with pytest.raises(GitError) as caught:
            Mirror.open(tmp_path / "cache", url).fetch()
        assert caught.value.reason == expected
        assert url in str(caught.value)


def test_local_folders_are_read_only_where_allowed(tmp_path: Path, repository: Path) -> None:
    for url in (str(repository), f"file://{repository}"):
        with pytest.raises(GitError) as caught:
            open_mirror(tmp_path / "cache", url, allow_local=False)
        assert caught.value.reason == "bad_url"


def test_two_processes_may_fetch_one_mirror_at_once(tmp_path: Path, commit: Commit, repository: Path) -> None:
    sha = commit({"a": "1"})
    program = (
        "import sys, pathlib; from driftline.git import Mirror;"
        "m = Mirror.open(pathlib.Path(sys.argv[1]), sys.argv[2]); m.fetch(); print(m.resolve('main'))"
    )
    command = [sys.executable, "-P", "-c", program, str(tmp_path / "cache"), str(repository)]
    racers = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    answers = [racer.communicate(timeout=60) for racer in racers]
    assert [out.strip() for out, _ in answers] == [sha] * 3, answers


@pytest.mark.parametrize("name", ["HEAD.lock", "packed-refs.lock", "refs/heads/new.lock"])
def test_what_a_killed_git_left_refuses_no_later_fetch(
    mirror: Mirror, commit: Commit, repository: Path, git: RunGit, name: str
) -> None:
    commit({"a": "1"})
    git(repository, "branch", "old")
    mirror.fetch()
    git(repository, "branch", "-D", "old")
    git(repository, "checkout", "-q", "-b", "new")
    head = commit({"a": "2"})
    left = mirror.git.folder / name
    left.parent.mkdir(parents=True, exist_ok=True)
    left.touch()
    with pytest.raises(GitError, match="try again in a minute"):  # a git may be at work there
        mirror.fetch()
    hour_ago = time.time() - 3600
    os.utime(left, (hour_ago, hour_ago))
    mirror.fetch()
    assert mirror.resolve("new") == head
    assert reason(mirror, "old") == "unknown_commit"


def test_a_full_disk_is_no_missing_repository(mirror: Mirror, commit: Commit) -> None:
    commit({"a": "1"})
    mirror.fetch()
    said = "error: unable to write file ./objects/ab: No space left on device\nfatal: unpack-objects failed"
    with pytest.raises(GitError, match="free some") as caught:
        mirror.git.blame_this_side(said)
    assert caught.value.reason == "disk_full"
