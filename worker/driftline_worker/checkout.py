"""The code under test, and nothing else of its tree, on this disk."""

from pathlib import Path

from driftline.contracts.jobs import CommitSource
from driftline.contracts.words import FailureKind
from driftline.git import GitError, Mirror

from driftline_worker.ending import CannotRun

TRANSIENT_REASONS = frozenset({"unreachable_repository", "git_timeout", "git_failed", "disk_full"})
"""Networks and disks come back; a missing commit does not."""


def check_out(source: CommitSource, *, mirrors: Path, import_dir: Path, allow_local: bool) -> Path:
    """Put the kernels' folder below `import_dir`, where only it can be imported, and return its path.

    Raises:
        CannotRun: with git's reason.
    """
    try:
        mirror = Mirror.open(mirrors, source.url, allow_local=allow_local)
        mirror.fetch_commit(source.sha)
        return mirror.extract(source.sha, source.kernel_path, import_dir)
    except GitError as error:
        kind = FailureKind.TRANSIENT if error.reason in TRANSIENT_REASONS else FailureKind.PERMANENT
        raise CannotRun(kind, error.reason, str(error)) from error
