"""The code under test, and nothing else of its tree, on this disk."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from driftline.contracts.jobs import CommitSource
from driftline.contracts.kernel_jobs import Suite
from driftline.contracts.words import FailureKind
from driftline.git import GitError, Mirror

from driftline_worker.ending import CannotRun
from driftline_worker.engine_sources import changed_sources, refuse_compiled_changes

TRANSIENT_REASONS = frozenset({"unreachable_repository", "git_timeout", "git_failed", "disk_full"})
"""Networks and disks come back; a missing commit does not."""


ENGINE_FOLDER = "vllm"
"""vLLM's Python package inside its own repository."""


def check_out_engine(source: CommitSource, release: str, *, mirrors: Path, import_dir: Path, allow_local: bool) -> Path:
    """Put the whole Python package of a commit of vLLM below `import_dir`.

    Raises:
        CannotRun: with git's reason, or unsupported if the release's compiled parts cannot stand for the commit's.
    """
    with told_as_reason():
        mirror = Mirror.open(mirrors, source.url, allow_local=allow_local)
        mirror.fetch()
        mirror.fetch_commit(source.sha)
        refuse_compiled_changes(changed_sources(mirror, source, release), source, release)
        return mirror.extract(source.sha, ENGINE_FOLDER, import_dir)


def check_out(source: CommitSource, *, mirrors: Path, import_dir: Path, allow_local: bool) -> Path:
    """Put the kernels' folder below `import_dir`, where only it can be imported, and return its path.

    Raises:
        CannotRun: with git's reason.
    """
    with told_as_reason():
        mirror = Mirror.open(mirrors, source.url, allow_local=allow_local)
        mirror.fetch_commit(source.sha)
        return mirror.extract(source.sha, source.kernel_path, import_dir)


def check_out_suite(source: CommitSource, suite: Suite, *, mirrors: Path, tree: Path, allow_local: bool) -> Path:
    """Put the repository's own tests, what they need beside them, and the kernels at their places below `tree`.

    Raises:
        CannotRun: with git's reason, or no_tests if the commit has none of the suite's paths.
    """
    with told_as_reason():
        mirror = Mirror.open(mirrors, source.url, allow_local=allow_local)
        mirror.fetch_commit(source.sha)
        if not any(mirror.has_path(source.sha, path) for path in suite.paths):
            message = f"the commit has no {', '.join(suite.paths)}; name its tests in driftline.toml, suites"
            raise CannotRun(FailureKind.UNSUPPORTED, "no_tests", message)
        kernels = [source.kernel_path] if suite.runs_in is None else []  # else an engine brings them
        return mirror.extract_paths(source.sha, [*suite.paths, *suite.beside, *kernels], tree)


@contextmanager
def told_as_reason() -> Iterator[None]:
    """git's errors as reasons why a job cannot run."""
    try:
        yield
    except GitError as error:
        kind = FailureKind.TRANSIENT if error.reason in TRANSIENT_REASONS else FailureKind.PERMANENT
        raise CannotRun(kind, error.reason, str(error)) from error
