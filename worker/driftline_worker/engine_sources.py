"""Is a commit of vLLM one that Python alone can stand for? Its compiled sources against those of the installed release."""

from collections.abc import Iterable

from driftline.contracts.jobs import CommitSource
from driftline.contracts.words import FailureKind
from driftline.git import GitError, Mirror

from driftline_worker.ending import CannotRun

COMPILED = ("csrc/", "cmake/", "CMakeLists.txt", "vllm_flash_attn/", "rust/")
"""Where vLLM keeps what a build turns into extension modules."""

MOST_NAMED = 5


def refuse_compiled_changes(mirror: Mirror, source: CommitSource, release: str) -> None:
    """Nothing, if the commit's compiled sources are those of the release.

    Raises:
        CannotRun: compiled_sources_changed or release_unknown, both unsupported.
    """
    try:
        tagged = mirror.resolve(f"v{release}")
    except GitError as error:
        raise CannotRun(
            FailureKind.UNSUPPORTED, "release_unknown",
            f"the repository has no tag v{release}, so it cannot be told whether {source.sha[:12]} changes compiled sources "
            "against the installed release; push that tag",
        ) from error  # fmt: skip
    changed = compiled_among(mirror.changed_paths(tagged, source.sha))
    if changed:
        more = f" and {len(changed) - MOST_NAMED} more" if len(changed) > MOST_NAMED else ""
        raise CannotRun(
            FailureKind.UNSUPPORTED, "compiled_sources_changed",
            f"{source.sha[:12]} has other compiled sources than v{release}: {', '.join(changed[:MOST_NAMED])}{more}; the "
            "installed extension modules cannot stand for them, and a full build is not configured",
        )  # fmt: skip


def compiled_among(paths: Iterable[str]) -> list[str]:
    """Those of some changed files that a build compiles."""
    return [path for path in paths if path.startswith(COMPILED)]
