"""The one error of git access. Its reason is for programs, its message for people: input and remedy."""

from typing import Literal

Reason = Literal[
    "bad_url",
    "bad_ref",
    "unreachable_repository",
    "not_a_repository",
    "unknown_commit",
    "no_default_branch",
    "no_merge_base",
    "no_kernels",
    "unsafe_tree",
    "git_timeout",
    "git_failed",
    "disk_full",
]


class GitError(Exception):
    """Something about a repository, a URL or a commit is not as asked."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason: Reason = reason
