"""Is a commit of vLLM one that Python alone can stand for? Its compiled sources against those of the installed release."""

from collections.abc import Sequence

from driftline.contracts.jobs import CommitSource
from driftline.contracts.words import FailureKind
from driftline.git import Mirror
from driftline.git.engine_files import compiled_changes, release_commit

from driftline_worker.ending import CannotRun

MOST_NAMED = 5


def changed_sources(mirror: Mirror, source: CommitSource, release: str) -> list[str] | None:
    """The files that a build would compile otherwise than the release's; None where the release has no tag to ask."""
    tagged = release_commit(mirror, release)
    return None if tagged is None else compiled_changes(mirror, tagged, source.sha)


def refuse_compiled_changes(changed: Sequence[str] | None, source: CommitSource, release: str) -> None:
    """Nothing, if the commit's compiled sources are those of the release.

    Raises:
        CannotRun: compiled_sources_changed or release_unknown, both unsupported.
    """
    if changed is None:
        raise CannotRun(
            FailureKind.UNSUPPORTED, "release_unknown",
            f"the repository has no tag v{release}, so it cannot be told whether {source.sha[:12]} changes compiled sources "
            "against the installed release; push that tag",
        )  # fmt: skip
    if changed:
        more = f" and {len(changed) - MOST_NAMED} more" if len(changed) > MOST_NAMED else ""
        raise CannotRun(
            FailureKind.UNSUPPORTED, "compiled_sources_changed",
            f"{source.sha[:12]} has other compiled sources than v{release}: {', '.join(changed[:MOST_NAMED])}{more}; the "
            "installed extension modules cannot stand for them, and a full build is not configured",
        )  # fmt: skip
