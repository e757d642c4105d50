"""What a mirror needs to read another repository's objects in place: where they lie, and its refs as a file of git's."""

from dataclasses import replace
from pathlib import Path

from driftline.git.command import Git

REMOTE_HEAD = "refs/driftline/HEAD"
"""Where the other side's HEAD is kept, which need not be a branch."""


def objects_of(repository: Path, git: Git) -> str:
    """The absolute folder of a repository's objects, be it bare, a work tree, or a second work tree of another.

    Raises:
        GitError: git_failed.
    """
    inside = repository / ".git"
    there = replace(git, folder=inside if inside.exists() else repository)
    return there.get("rev-parse", "--path-format=absolute", "--git-path", "objects").text


def packed_refs(listed: str) -> str:
    """What `git ls-remote` printed, as a packed-refs file; HEAD becomes REMOTE_HEAD, peeled tags are left to git."""
    refs = [line.split("\t") for line in listed.splitlines()]
    named = {REMOTE_HEAD if name == "HEAD" else name: sha for sha, name in refs if not name.endswith("^{}")}
    return "".join(f"{named[name]} {name}\n" for name in sorted(named))
