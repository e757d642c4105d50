"""A repository on this machine read in place: refs, layout and folders of a commit without a copy of its objects."""

from collections.abc import Callable
from pathlib import Path

import pytest
from driftline.contracts.words import Layout
from driftline.git import GitError, Kernels, Mirror

Commit = Callable[..., str]
Git = Callable[..., str]

OPS = "vllm/model_executor/layers/mamba/ops"
FILES = {f"{OPS}/ssd_combined.py": "x = 1\n", "weights.bin": "a large object that no kernel needs\n"}


@pytest.mark.parametrize("name", ["main", "v1", "HEAD", "HEAD^", "{first}"])
def test_every_name_of_a_commit_is_known(repository: Path, mirror: Mirror, commit: Commit, git: Git, name: str) -> None:
    first = commit(FILES)
    second = commit({f"{OPS}/mamba_ssm.py": "y = 1\n"})
    git(repository, "tag", "-a", "v1", "-m", "a tag with a message", first)
    mirror.borrow()
    wanted = second if name in ("main", "HEAD") else first
    assert mirror.resolve(name.format(first=first)) == wanted


def test_refs_are_those_of_now(repository: Path, mirror: Mirror, commit: Commit, git: Git) -> None:
    commit(FILES)
    git(repository, "branch", "gone")
    mirror.borrow()
    git(repository, "branch", "-D", "gone")
    newer = commit({"README": "more\n"})
    mirror.borrow()
    assert mirror.resolve("main") == newer
    with pytest.raises(GitError, match="no commit 'gone'"):
        mirror.resolve("gone")


def test_nothing_is_copied_and_an_object_that_no_kernel_needs_may_be_missing(
    repository: Path, mirror: Mirror, commit: Commit, git: Git, tmp_path: Path
) -> None:
    sha = commit(FILES)
    lost = git(repository, "rev-parse", "main:weights.bin")
    (repository / ".git" / "objects" / lost[:2] / lost[2:]).unlink()
    with pytest.raises(GitError):
        Mirror.open(tmp_path / "other", str(repository)).fetch()
    mirror.borrow()
    kernels = mirror.find_kernels(sha)
    assert kernels is not None
    unpacked = mirror.extract(sha, kernels.path, tmp_path / "import")
    assert (unpacked / "ssd_combined.py").read_text() == "x = 1\n"
    assert not list((mirror.git.folder / "objects").glob("??/*"))


def test_a_second_work_tree_is_read_through_to_its_repository(
    repository: Path, commit: Commit, git: Git, tmp_path: Path
) -> None:
    sha = commit(FILES)
    git(repository, "worktree", "add", "--quiet", "--detach", str(tmp_path / "second"))
    mirror = Mirror.open(tmp_path / "cache", str(tmp_path / "second"))
    mirror.borrow()
    assert mirror.resolve("HEAD") == sha
    assert mirror.tree_id(sha, OPS) is not None


def test_a_folder_that_is_no_repository_is_named(tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    with pytest.raises(GitError, match="no git repository"):
        Mirror.open(tmp_path / "cache", str(tmp_path / "plain")).borrow()


def test_mamba_ssm_s_folder_is_found_only_where_it_is_asked_for(mirror: Mirror, commit: Commit) -> None:
    sha = commit({"mamba_ssm/ops/triton/ssd_combined.py": "x = 1\n", "mamba_ssm/__init__.py": ""})
    mirror.borrow()
    assert mirror.find_kernels(sha) is None
    assert mirror.find_kernels(sha, foreign=True) == Kernels(Layout.MAMBA_SSM, "mamba_ssm")
